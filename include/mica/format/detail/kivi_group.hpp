// SPDX-License-Identifier: Apache-2.0
//
// Numbers that share a scale and a zero point, in codes of two or four bits:
//
//   value = scale * (step * code + zero)        | scale, one byte | zero, one signed byte |
//
// The scale is one of Q4_S's eight bits. The zero counts scales, and a code of two bits is worth four of
// them, so that it moves by a quarter of a step. Numbers far from zero that differ little keep what they
// differ by, until they are 30 times larger than that (100 times with four bits).
#pragma once

#include "mica/format/q4_s.hpp"

#include <algorithm>
#include <cmath>

namespace mica::format {

/// The scale and the zero of a group, as they lie in memory.
struct KiviRange {
  std::uint8_t scale = 0;
  std::int8_t zero = 0;

  [[nodiscard]] float factor() const noexcept { return Q4_S::scale_of(scale); }
  /// What code 0 stands for. Exact: four bits times eight.
  [[nodiscard]] float minimum() const noexcept { return factor() * static_cast<float>(zero); }
};
static_assert(sizeof(KiviRange) == 2);

template <int bits>
struct KiviGroup {
  static_assert(bits == 2 || bits == 4);
  static constexpr std::size_t max_values = 32;
  static constexpr int code_max = (1 << bits) - 1;
  static constexpr int step = bits == 2 ? 4 : 1;  // scales

  /// Codes of n numbers, n a multiple of 16 and at most 32, and what they share. The least squared error of
  /// twelve candidates. What F16 could not hold makes the scale no number, so that it cannot hide behind
  /// small codes.
  static KiviRange encode(const float* values, std::size_t n, std::uint8_t* codes) noexcept {
    std::fill_n(codes, n, std::uint8_t{0});
    const auto [low, high] = std::minmax_element(values, values + n);
    const bool fits = std::all_of(values, values + n, [](float x) { return std::fabs(x) <= 65504.0f; });
    if (!fits) return {Q4_S::no_number, 0};
    // The least scale whose codes span the numbers and whose zero reaches the lowest.
    const float needed =
        std::max((*high - *low) / static_cast<float>(code_max * step), std::fabs(*low) / max_zero);
    const int about = Q4_S::nearest_scale(needed);
    if (about == 0) return {};
    KiviRange best;
    float min = std::numeric_limits<float>::infinity();
    for (int scale = std::max(about - 2, 1); scale <= std::min(about + 1, Q4_S::no_number - 1); ++scale) {
      const float factor = Q4_S::scale_of(static_cast<std::uint8_t>(scale)), inverse = 1.0f / factor;
      const float middle = (*low + *high) * 0.5f * inverse - static_cast<float>(code_max * step) * 0.5f;
      for (int beside = -1; beside <= 1; ++beside) {
        const float zero = std::clamp(std::nearbyint(middle) + static_cast<float>(beside), -127.0f, 127.0f);
        const float e = error(values, n, inverse, zero) * factor * factor;
        if (!(e < min)) continue;
        min = e;
        best = {static_cast<std::uint8_t>(scale), static_cast<std::int8_t>(zero)};
      }
    }
    const float inverse = 1.0f / best.factor();
    for (std::size_t i = 0; i < n; ++i)
      codes[i] = static_cast<std::uint8_t>(code_of(values[i] * inverse, best.zero));
    return best;
  }

  [[nodiscard]] static float value(KiviRange span, int code) noexcept {
    return span.factor() * static_cast<float>(step * code + span.zero);
  }

 private:
  static constexpr int max_zero = 127;

  /// The code of a number that has been divided by its scale.
  [[nodiscard]] static int code_of(float scaled, float zero) noexcept {
    const float code = (scaled - zero) * (1.0f / step);
    return static_cast<int>(std::clamp(code, 0.0f, static_cast<float>(code_max)) + 0.5f);
  }
  /// In units of the scale, squared; in sixteen sums, which compilers turn into vectors.
  [[nodiscard]] static float error(const float* values, std::size_t n, float inverse, float zero) noexcept {
    float sums[16] = {};
    for (std::size_t first = 0; first < n; first += 16) {
      for (std::size_t i = 0; i < 16; ++i) {
        const float scaled = values[first + i] * inverse;
        const float off = scaled - zero - static_cast<float>(step * code_of(scaled, zero));
        sums[i] += off * off;
      }
    }
    float sum = 0;
    for (const float s : sums) sum += s;
    return sum;
  }
};

}  // namespace mica::format
