// SPDX-License-Identifier: Apache-2.0
//
// The values of a block in eights, as formats with a codebook store them: one entry of eight numbers or two
// entries of four, and signs.
#pragma once

#include "mica/format/encode/values.hpp"
#include "mica_tools/encode/entry_search.hpp"
#include "mica_tools/encode/split_codebook.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>

namespace mica::format::search {

/// How the signs of eight values are stored.
enum class Signs : std::uint8_t {
  of_levels,  ///< levels have signs
  all,        ///< eight bits
  even,       ///< seven bits: the number of minus signs is even
};

/// The weighted error of levels q as a function of their scale s: sum w (x - s q)^2 less sum w x^2.
struct ErrorOfScale {
  float xq = 0;  // sum w x q
  float qq = 0;  // sum w q^2

  [[nodiscard]] float at(float s) const noexcept { return s * (s * qq - 2 * xq); }
};

/// Entries and signs for eight values.
template <std::size_t entries>
struct CodedEight {
  std::uint16_t entry[entries];
  std::uint8_t signs;
  ErrorOfScale error;
};

/// 256 values. Layout (codebook_groups.hpp) says how they are coded.
template <class Layout>
class Eights {
 public:
  using Codebook = typename Layout::Codebook;
  static constexpr std::size_t entries = 8 / Codebook::numbers;  // for eight values
  using Coded = CodedEight<entries>;

  /// The values outlive this.
  explicit Eights(const Values<256>& values) noexcept : w_(values.w) {
    for (std::size_t i = 0; i < 256; ++i) {
      const bool minus = Layout::signs != Signs::of_levels && values.x[i] < 0;
      x_[i] = minus ? -values.x[i] : values.x[i];
      signs_[i / 8] = static_cast<std::uint8_t>(signs_[i / 8] | (minus ? 1u : 0u) << (i % 8));
    }
  }

  /// Values that are coded: magnitudes where signs are stored.
  [[nodiscard]] const float* values() const noexcept { return x_; }
  [[nodiscard]] const float* weights() const noexcept { return w_; }

  /// The entries with the least weighted error for eights `which`, each in its scale. shift: the place of the
  /// list of levels.
  void code(const std::size_t (&which)[Four::size], std::size_t shift, const Four& scale,
            Coded (&out)[Four::size]) const noexcept {
    bool wrong = false;
    for (const std::size_t j : which) wrong = wrong || needs_wrong_sign(j);
    if constexpr (Layout::signs == Signs::even) {
      if (wrong) return code_with<true>(which, shift, scale, out);
    }
    code_with<false>(which, shift, scale, out);
  }

 private:
  [[nodiscard]] bool needs_wrong_sign(std::size_t j) const noexcept {
    return Layout::signs == Signs::even && std::popcount(signs_[j]) % 2 != 0;
  }

  template <bool wrong_signs>
  void code_with(const std::size_t (&which)[Four::size], std::size_t shift, const Four& scale,
                 Coded (&out)[Four::size]) const noexcept {
    Four levels[Codebook::levels];
    for (std::size_t c = 0; c < Codebook::levels; ++c) levels[c] = scale * Four::all(Layout::level(shift, c));
    FoundEntries found[entries][wrong_signs ? 2 : 1];
    for (std::size_t e = 0; e < entries; ++e) {
      Four x[Codebook::numbers], w[Codebook::numbers];
      for (std::size_t i = 0; i < Codebook::numbers; ++i) {
        for (std::size_t k = 0; k < Four::size; ++k) {
          const std::size_t at = 8 * which[k] + e * Codebook::numbers + i;
          x[i].at[k] = x_[at];
          w[i].at[k] = w_[at];
        }
      }
      EntrySearch<Codebook, wrong_signs>(x, w, levels).find(found[e]);
    }
    for (std::size_t k = 0; k < Four::size; ++k) {
      out[k] = {{}, signs_[which[k]], {}};
      std::size_t with_wrong = entries;  // none
      if constexpr (wrong_signs) {
        if (needs_wrong_sign(which[k])) with_wrong = entry_with_wrong_sign(found, k);
      }
      for (std::size_t e = 0; e < entries; ++e) {
        const bool wrong = e == with_wrong;
        out[k].entry[e] = found[e][wrong_signs && wrong ? 1 : 0].entry[k];
        add(which[k], e, shift, wrong, out[k]);
      }
    }
  }

  /// Of two entries the one for which a wrong sign costs less.
  [[nodiscard]] static std::size_t entry_with_wrong_sign(const FoundEntries (&found)[entries][2],
                                                         std::size_t k) noexcept {
    if constexpr (entries == 1) return 0;
    const auto error = [&](std::size_t e, std::size_t wrong) { return found[e][wrong].error.at[k]; };
    return error(0, 1) + error(entries - 1, 0) <= error(0, 0) + error(entries - 1, 1) ? 0 : 1;
  }

  /// Adds the sums of entry e to out.error, and turns the sign that costs least if one must be wrong.
  void add(std::size_t j, std::size_t e, std::size_t shift, bool wrong, Coded& out) const noexcept {
    const std::size_t first = e * Codebook::numbers;
    float least = 0;
    std::size_t weakest = Codebook::numbers;
    for (std::size_t i = 0; i < Codebook::numbers; ++i) {
      const float q = Layout::level(shift, Codebook::number(out.entry[e], i));
      const float w = w_[8 * j + first + i], wxq = w * x_[8 * j + first + i] * q;
      out.error.xq += wxq;
      out.error.qq += w * q * q;
      if (weakest < Codebook::numbers && wxq >= least) continue;
      least = wxq;
      weakest = i;
    }
    if (!wrong) return;
    out.error.xq -= 2 * least;
    out.signs = static_cast<std::uint8_t>(out.signs ^ 1u << (first + weakest));
  }

  const float* w_;
  float x_[256];
  std::uint8_t signs_[32] = {};  // of the values
};

}  // namespace mica::format::search
