// SPDX-License-Identifier: Apache-2.0
//
// A block of a format with a codebook: value = d * step * (2 scale[g] + 1) * level, with a half float d and
// integer scales. A Layout describes the format:
//
//   Codebook                 a SplitCodebook
//   signs                    how signs are stored (Signs)
//   group                    values that share a scale: 16 or 32
//   scales                   scales are 0 to scales - 1
//   step                     as above
//   shifts, shared           lists of levels: 1, or 2 of which `shared` adjacent eights choose one
//   level(shift, number)     the level that a number chooses
//   Free, free_step, reach   for the guess: levels of single values, their unit, and where candidates start
//   spread                   samples around the guess, as factors
//   undone                   the part of the shrinking by errors that is undone
//
// Scales are guessed as if values could have any levels. In four scales around the guess the best entries of
// each eight values are found. In other scales the best of these four is close to the best entry, and its
// error costs a few operations (ErrorOfScale): with these errors d and all scales are chosen. For the chosen
// scales the best entries are found, and for these entries d.
#pragma once

#include "mica/format/encode/levels.hpp"
#include "mica/format/encode/scale.hpp"
#include "mica/format/encode/values.hpp"
#include "mica_tools/encode/eights.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace mica::format::search {

/// The odd integers 1 - 2 n to 2 n - 1.
template <int n>
struct OddLevels {
  static constexpr float low = 1 - 2 * n;
  static constexpr float high = 2 * n - 1;

  /// Every number becomes the nearest level.
  template <std::size_t count>
  static constexpr void settle(float (&t)[count]) noexcept {
    float inside[count] = {};
    for (std::size_t i = 0; i < count; ++i) inside[i] = clamped(t[i], low, high);
    for (std::size_t i = 0; i < count; ++i) t[i] = 2 * whole(0.5f * (inside[i] - 1)) + 1;
  }
};

/// The parts of a block, before they are packed.
template <class Layout>
struct CodebookParts {
  Half d = {};
  std::uint8_t scale[256 / Layout::group] = {};
  std::uint16_t entry[256 / Layout::Codebook::numbers] = {};
  std::uint8_t signs[32] = {};  // of eight values: bit i is 1 where value i is negative
  std::uint8_t shift[32] = {};  // of eight values

  /// Of 32 values: seven signs of each eight, from the lowest bit on, and the scale above them.
  [[nodiscard]] std::uint32_t signs_and_scale(std::size_t g) const noexcept {
    std::uint32_t bits = std::uint32_t{scale[g]} << 28;
    for (std::size_t j = 0; j < 4; ++j) bits |= (signs[4 * g + j] & 127u) << (7 * j);
    return bits;
  }
};

/// The search for one block.
template <class Layout>
class CodebookGroups {
 public:
  /// The values outlive this.
  explicit CodebookGroups(const Values<256>& values) noexcept : values_(values), eights_(values) {}

  /// Finds all parts. A block that would be worse than zeros is zeros.
  [[nodiscard]] CodebookParts<Layout> find() noexcept {
    for (std::size_t g = 0; g < groups; ++g) sample(g);
    const float largest = *std::max_element(guess_, guess_ + groups);
    if (largest == 0) return {};
    // The largest scale becomes 0.55 to 1.15 times the largest integer; beyond one it is cut off.
    const float coarse = choose_d(32, largest / (0.55f * max_scale), largest / (1.15f * max_scale));
    set_d(choose_d(8, 1.018f * coarse, coarse / 1.018f));
    for (std::size_t g = 0; g < groups; ++g) scale_[g] = choose_scale(g, d_).scale;
    CodebookParts<Layout> parts;
    const ErrorOfScale error = code(parts);
    if (!(error.xq > 0)) return {};
    set_d(error.xq / error.qq * gain(error));
    if (!(error.at(d_) < 0)) return {};
    parts.d = half_;
    return parts;
  }

 private:
  using Coded = typename Eights<Layout>::Coded;
  static constexpr std::size_t groups = 256 / Layout::group;
  static constexpr std::size_t eights = Layout::group / 8;  // of a group
  static constexpr float max_scale = 2 * Layout::scales - 1;

  /// d in units of the values, times the step.
  void set_d(float d) noexcept {
    half_ = values_.stored(d / Layout::step);
    d_ = values_.loaded(half_) * Layout::step;
  }

  /// The best d in the sense of squares makes the block smaller: sum w x q is sum w x^2 less the error. An
  /// error is noise in the sum of a product, but a block that is too small shrinks every product, which in
  /// formats of one and two bits is a large part. So some of it is undone (docs/encoders.md has perplexities).
  [[nodiscard]] float gain(const ErrorOfScale& error) const noexcept {
    float squares = 0;
    for (std::size_t i = 0; i < 256; ++i) squares += values_.w[i] * values_.x[i] * values_.x[i];
    const float restored = squares * error.qq / (error.xq * error.xq);  // 1 for a block without an error
    return std::min(1 + Layout::undone * (restored - 1), 1.5f);
  }

  /// Guesses the scale of a group and samples around the guess. Entries have fewer large levels than single
  /// values would choose, so their best scale is a little larger. Where magnitudes are nearly equal, entries
  /// of nothing but the lowest level may be better still.
  void sample(std::size_t g) noexcept {
    const float* const x = eights_.values() + g * Layout::group;
    const float* const w = eights_.weights() + g * Layout::group;
    const Scale free = find_scale<typename Layout::Free, Effort::quick>(x, w, Layout::group, Layout::reach);
    const float guess = 1.075f / Layout::free_step * std::fabs(free.value);
    if (guess == 0) return;
    const float error = sample_around(g, guess);
    if constexpr (Layout::signs == Signs::of_levels) return;
    ErrorOfScale flat;
    for (std::size_t i = 0; i < Layout::group; ++i) {
      flat.xq += w[i] * x[i] * Layout::level(0, 0);
      flat.qq += w[i] * Layout::level(0, 0) * Layout::level(0, 0);
    }
    const float flat_scale = flat.xq / flat.qq;
    if (flat.at(flat_scale) < error && sample_around(g, flat_scale) > error) sample_around(g, guess);
  }
  /// Returns the least error of the samples.
  float sample_around(std::size_t g, float guess) noexcept {
    guess_[g] = guess;
    const Four scale = Four::all(guess) * Layout::spread;
    for (std::size_t j = g * eights; j < (g + 1) * eights; ++j) {
      for (std::size_t shift = 0; shift < Layout::shifts; ++shift) {
        Coded coded[Four::size];
        eights_.code({j, j, j, j}, shift, scale, coded);
        for (std::size_t k = 0; k < Four::size; ++k) sampled_[shift][j][k] = coded[k].error;
      }
    }
    const Four error = error_of(g, scale);
    return *std::min_element(error.at, error.at + Four::size);
  }

  /// The errors of a group in four scales, less its sum of squares.
  [[nodiscard]] Four error_of(std::size_t g, const Four& s) const noexcept {
    Four error = Four::all(0);
    for (std::size_t j = g * eights; j < (g + 1) * eights; j += Layout::shared) {
      Four best = Four::all(std::numeric_limits<float>::infinity());
      for (std::size_t shift = 0; shift < Layout::shifts; ++shift) {
        Four sum = Four::all(0);
        for (std::size_t i = j; i < j + Layout::shared; ++i) {
          Four least_of_eight = Four::all(std::numeric_limits<float>::infinity());
          for (const ErrorOfScale& each : sampled_[shift][i])
            least_of_eight = least(least_of_eight, s * (s * Four::all(each.qq) - Four::all(2 * each.xq)));
          sum = sum + least_of_eight;
        }
        best = least(best, sum);
      }
      error = error + best;
    }
    return error;
  }

  struct ScaleChoice {
    float scale;  // an odd integer
    float error;
  };
  /// Of the eight odd integers around the guess the best one.
  [[nodiscard]] ScaleChoice choose_scale(std::size_t g, float d) const noexcept {
    const float middle = guess_[g] * inverse_or_zero(d);
    const float first = 2 * whole(clamped(0.5f * (middle - 8), 0, 0.5f * (max_scale - 15))) + 1;
    ScaleChoice best{first, std::numeric_limits<float>::infinity()};
    for (const float from : {first, first + 8}) {
      const Four tried = Four::all(from) + Four{{0, 2, 4, 6}};
      const Four error = error_of(g, tried * Four::all(d));
      const auto least = std::min_element(error.at, error.at + Four::size) - error.at;
      if (error.at[least] < best.error) best = {tried.at[least], error.at[least]};
    }
    return best;
  }

  /// Of `count` numbers from `first` down to `last` the one with the least error of the block.
  [[nodiscard]] float choose_d(int count, float first, float last) const noexcept {
    const float step = (1 / last - 1 / first) / static_cast<float>(count - 1);
    float best = first, least_error = std::numeric_limits<float>::infinity();
    for (int k = 0; k < count; ++k) {
      const float d = 1 / (1 / first + step * static_cast<float>(k));
      float error = 0;
      for (std::size_t g = 0; g < groups; ++g) error += choose_scale(g, d).error;
      if (error >= least_error) continue;
      least_error = error;
      best = d;
    }
    return best;
  }

  /// The best entries for d and scales as they are. Returns the error of the block as a function of d.
  [[nodiscard]] ErrorOfScale code(CodebookParts<Layout>& parts) const noexcept {
    for (std::size_t g = 0; g < groups; ++g) parts.scale[g] = static_cast<std::uint8_t>(scale_[g] * 0.5f);
    ErrorOfScale error;
    for (std::size_t j = 0; j < 32; j += Four::size) {
      Four scale, integer;
      for (std::size_t k = 0; k < Four::size; ++k) integer.at[k] = scale_[(j + k) / eights];
      scale = integer * Four::all(d_);
      Coded coded[Layout::shifts][Four::size];
      for (std::size_t shift = 0; shift < Layout::shifts; ++shift)
        eights_.code({j, j + 1, j + 2, j + 3}, shift, scale, coded[shift]);
      for (std::size_t k = 0; k < Four::size; k += Layout::shared) {
        const std::size_t shift = choose_shift(coded, k, scale);
        for (std::size_t i = k; i < k + Layout::shared; ++i) {
          put(coded[shift][i], j + i, shift, parts);
          error.xq += integer.at[i] * coded[shift][i].error.xq;
          error.qq += integer.at[i] * integer.at[i] * coded[shift][i].error.qq;
        }
      }
    }
    return error;
  }
  /// Of the eights from k on that share one.
  [[nodiscard]] static std::size_t choose_shift(const Coded (&coded)[Layout::shifts][Four::size],
                                                std::size_t k, const Four& scale) noexcept {
    float error[Layout::shifts] = {};
    for (std::size_t shift = 0; shift < Layout::shifts; ++shift) {
      for (std::size_t i = k; i < k + Layout::shared; ++i)
        error[shift] += coded[shift][i].error.at(scale.at[i]);
    }
    return static_cast<std::size_t>(std::min_element(error, error + Layout::shifts) - error);
  }
  static void put(const Coded& coded, std::size_t j, std::size_t shift,
                  CodebookParts<Layout>& parts) noexcept {
    constexpr std::size_t entries = Eights<Layout>::entries;
    std::copy_n(coded.entry, entries, parts.entry + entries * j);
    parts.signs[j] = coded.signs;
    parts.shift[j] = static_cast<std::uint8_t>(shift);
  }

  const Values<256>& values_;
  Eights<Layout> eights_;
  ErrorOfScale sampled_[Layout::shifts][32][Four::size] = {};
  float guess_[groups] = {};  // scales in units of the values
  float scale_[groups] = {};  // odd integers
  float d_ = 0;               // the value of half_, in units of the values, times the step
  Half half_ = {};
};

}  // namespace mica::format::search
