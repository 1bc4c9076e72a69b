// SPDX-License-Identifier: Apache-2.0
//
// The entry of a codebook with the least weighted error: the best one of all entries, not of a neighbourhood.
//
// An error is a sum over numbers, so it is the sum of the errors of two halves. Those of all lower halves are
// computed once; then an entry costs a comparison:
//
//   least error = min over upper halves h of ( error(h) + min over the entries with h of error(lower half) )
//
// Upper halves whose error is too large with every lower half are passed over with all their entries.
//
// Where the number of minus signs of eight values must be even, and that of the values is odd, one value gets
// the wrong sign: the one for which this costs least. That depends on the entry, so there are two errors: one
// with all signs right, and one with a wrong sign.
#pragma once

#include "mica_tools/encode/four.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>

namespace mica::format::search {

/// The errors of `choices` choices for some numbers: at[0] with the right signs, at[1] with one wrong sign.
template <std::size_t choices, bool wrong_signs>
struct ErrorTable {
  Four at[wrong_signs ? 2 : 1][choices];

  /// Of one number. `levels` are in units of the value.
  void fill(const Four& value, const Four& weight, const Four (&levels)[choices]) noexcept {
    for (std::size_t c = 0; c < choices; ++c) {
      const Four right = value - levels[c];
      at[0][c] = weight * right * right;
      if constexpr (wrong_signs) {
        const Four wrong = value + levels[c];
        at[1][c] = weight * wrong * wrong;
      }
    }
  }

  /// Of all pairs of choices for lower and upper numbers; the lower one counts fastest.
  template <std::size_t low, std::size_t high>
  void fill(const ErrorTable<low, wrong_signs>& lower, const ErrorTable<high, wrong_signs>& upper) noexcept {
    static_assert(low * high == choices);
    for (std::size_t h = 0; h < high; ++h) {
      for (std::size_t l = 0; l < low; ++l) {
        at[0][h * low + l] = lower.at[0][l] + upper.at[0][h];
        if constexpr (wrong_signs) at[1][h * low + l] = one_wrong(lower, l, upper, h);
      }
    }
  }

  /// The error of a pair when the wrong sign is in the lower numbers or in the upper ones.
  template <std::size_t low, std::size_t high>
  [[nodiscard, gnu::always_inline]] static Four one_wrong(const ErrorTable<low, true>& lower, std::size_t l,
                                                          const ErrorTable<high, true>& upper,
                                                          std::size_t h) noexcept {
    return least(lower.at[1][l] + upper.at[0][h], lower.at[0][l] + upper.at[1][h]);
  }

  /// The choice with the least error in the second of four searches.
  [[nodiscard]] std::size_t place_of_least() const noexcept {
    std::size_t best = 0;
    for (std::size_t c = 1; c < choices; ++c) best = at[0][c].at[1] < at[0][best].at[1] ? c : best;
    return best;
  }

  /// The least error with the right signs.
  [[nodiscard]] Four floor() const noexcept {
    Four out = at[0][0];
    for (std::size_t c = 1; c < choices; ++c) out = least(out, at[0][c]);
    return out;
  }
};

/// The results of four searches.
struct FoundEntries {
  Four error;
  std::uint16_t entry[Four::size];
};

/// Four searches in a SplitCodebook, for different values or with different levels.
template <class Codebook, bool wrong_signs>
class EntrySearch {
 public:
  /// values, weights: of the numbers of an entry. levels: in units of the values.
  EntrySearch(const Four* values, const Four* weights, const Four (&levels)[Codebook::levels]) noexcept {
    constexpr std::size_t each = Codebook::numbers / 4;
    Quarter low, high;
    fill(low, values, weights, levels);
    fill(high, values + each, weights + each, levels);
    fill(middle_, values + 2 * each, weights + 2 * each, levels);
    fill(top_, values + 3 * each, weights + 3 * each, levels);
    lower_.fill(low, high);
    floor_ = low.floor() + high.floor();
  }

  /// The entries with the least errors: out[0] with the right signs, out[1] with one wrong sign.
  void find(FoundEntries (&out)[wrong_signs ? 2 : 1]) noexcept {
    visit(top_.place_of_least(), middle_.place_of_least());
    const Four floor = middle_.floor() + floor_;
    for (std::size_t t = 0; t < Codebook::quarters; ++t) {
      if (!may_be_best(top_.at[0][t] + floor)) continue;
      for (std::size_t m = 0; m < Codebook::quarters; ++m) {
        if (may_be_best(middle_.at[0][m] + top_.at[0][t] + floor_)) visit(t, m);
      }
    }
    for (std::size_t wrong = 0; wrong < (wrong_signs ? 2 : 1); ++wrong) {
      out[wrong].error = best_[wrong];
      for (std::size_t k = 0; k < Four::size; ++k) out[wrong].entry[k] = entry_of(wrong, k);
    }
  }

 private:
  using Quarter = ErrorTable<Codebook::quarters, wrong_signs>;
  static constexpr float infinite = std::numeric_limits<float>::infinity();

  static void fill(Quarter& out, const Four* values, const Four* weights,
                   const Four (&levels)[Codebook::levels]) noexcept {
    if constexpr (Codebook::numbers == 4) {
      out.fill(values[0], weights[0], levels);
    } else {
      ErrorTable<Codebook::levels, wrong_signs> low, high;
      low.fill(values[0], weights[0], levels);
      high.fill(values[1], weights[1], levels);
      out.fill(low, high);
    }
  }

  /// A wrong sign only adds to an error, so errors with the right signs are a bound for both.
  [[nodiscard, gnu::always_inline]] bool may_be_best(const Four& bound) const noexcept {
    return any_below(bound, best_[wrong_signs ? 1 : 0]);
  }

  /// All entries whose upper half is t and m.
  void visit(std::size_t t, std::size_t m) noexcept {
    const std::size_t h = t * Codebook::quarters + m;
    Four right = Four::all(infinite), wrong = right;
    for (std::size_t e = Codebook::lists.first[h]; e < Codebook::lists.first[h + 1]; ++e) {
      const std::size_t l = Codebook::lists.lower[e];
      right = least(right, lower_.at[0][l]);
      if constexpr (wrong_signs) wrong = least(wrong, lower_.at[1][l]);
    }
    const Four upper = middle_.at[0][m] + top_.at[0][t];
    keep(right + upper, h, 0);
    if constexpr (wrong_signs) {
      keep(least(wrong + upper, right + Quarter::one_wrong(middle_, m, top_, t)), h, 1);
    }
  }
  void keep(const Four& error, std::size_t h, std::size_t wrong) noexcept {
    Four& best = best_[wrong];
    for (std::size_t k = 0; k < Four::size; ++k) {
      half_[wrong][k] = error.at[k] < best.at[k] ? static_cast<std::int32_t>(h) : half_[wrong][k];
    }
    best = least(error, best);
  }

  /// The best entry of search k, which is among those with its upper half.
  [[nodiscard]] std::uint16_t entry_of(std::size_t wrong, std::size_t k) const noexcept {
    const auto h = static_cast<std::size_t>(half_[wrong][k]);
    const std::size_t t = h / Codebook::quarters, m = h % Codebook::quarters;
    const float upper = middle_.at[0][m].at[k] + top_.at[0][t].at[k];
    float upper_wrong = upper;
    if constexpr (wrong_signs) {
      if (wrong != 0) upper_wrong = Quarter::one_wrong(middle_, m, top_, t).at[k];
    }
    float best = infinite;
    std::size_t found = Codebook::lists.first[h];
    for (std::size_t e = found; e < Codebook::lists.first[h + 1]; ++e) {
      const std::size_t l = Codebook::lists.lower[e];
      float error = lower_.at[0][l].at[k] + upper_wrong;
      if constexpr (wrong_signs) {
        const float in_lower = lower_.at[1][l].at[k] + upper;
        if (wrong != 0 && in_lower < error) error = in_lower;
      }
      if (error >= best) continue;
      best = error;
      found = e;
    }
    return static_cast<std::uint16_t>(found);
  }

  ErrorTable<Codebook::halves, wrong_signs> lower_;
  Quarter middle_, top_;                                       // of the upper half
  Four floor_;                                                 // the least errors of lower halves
  Four best_[2] = {Four::all(infinite), Four::all(infinite)};  // right signs, one wrong sign
  std::int32_t half_[2][Four::size] = {};                      // the upper halves of the best entries
};

}  // namespace mica::format::search
