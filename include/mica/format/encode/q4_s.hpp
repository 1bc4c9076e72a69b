// SPDX-License-Identifier: Apache-2.0
//
// Q4_S: scales are candidates in lanes, as in scale.hpp; each takes the better grid for every four values.
#pragma once

#include "mica/format/encode/encoder.hpp"
#include "mica/format/encode/levels.hpp"
#include "mica/format/encode/pack.hpp"
#include "mica/format/encode/scale.hpp"
#include "mica/format/q4_s.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace mica::format {

namespace search {

/// The two grids of Q4_S: even places of its levels, and odd ones.
struct ShiftedLevels {
  /// The place of a number, not rounded: 0 and 31 are the outermost levels.
  [[nodiscard]] static float place(float t) noexcept {
    const float size = std::fabs(t), beyond = size - 22;
    return 15.5f + std::copysign(0.5f * size - 0.125f * (beyond + std::fabs(beyond)), t);
  }
  /// The code that lies nearest to a place on a grid.
  [[nodiscard]] static float code(float place, float shift) noexcept {
    return whole(clamped(0.5f * (place - shift), 0, 15));
  }
  /// The level of a code.
  [[nodiscard]] static float level(float code, float shift) noexcept {
    const float steps = 2 * code + shift - 15.5f, size = std::fabs(steps), beyond = size - 11;
    return std::copysign(2 * size + beyond + std::fabs(beyond), steps);
  }
};

}  // namespace search

/// Encodes Q4_S.
template <>
struct Encoder<Q4_S> {
  /// As Encoder. The effort changes nothing.
  template <search::Effort effort = search::Effort::thorough>
  static void encode(const float* values, const float* weights, Q4_S::Block& block) noexcept;

 private:
  /// Candidates: the largest value becomes 0.8 to 1.4 times the outermost level, in steps of scales.
  static constexpr std::size_t count = 8;

  /// Four values on the better of the two grids, for every candidate; `miss` grows by the weighted error.
  static void take_four(const float* x, const float* w, const float (&scale)[count],
                        const float (&inverse)[count], float (&miss)[count]) noexcept;
};

inline void Encoder<Q4_S>::take_four(const float* x, const float* w, const float (&scale)[count],
                                     const float (&inverse)[count], float (&miss)[count]) noexcept {
  using search::ShiftedLevels;
  float error[2][count] = {};
  for (std::size_t i = 0; i < 4; ++i) {
    float place[count];
    for (std::size_t k = 0; k < count; ++k) place[k] = ShiftedLevels::place(x[i] * inverse[k]);
    for (std::size_t shift = 0; shift < 2; ++shift) {
      const auto by = static_cast<float>(shift);
      // In loops of their own: gcc makes branches of comparisons whose outcome goes into a sum.
      float inside[count], level[count];
      for (std::size_t k = 0; k < count; ++k) inside[k] = search::clamped(0.5f * (place[k] - by), 0, 15);
      for (std::size_t k = 0; k < count; ++k) level[k] = ShiftedLevels::level(search::whole(inside[k]), by);
      for (std::size_t k = 0; k < count; ++k) {
        const float off = x[i] - scale[k] * level[k];
        error[shift][k] += w[i] * off * off;
      }
    }
  }
  for (std::size_t k = 0; k < count; ++k) miss[k] += std::min(error[0][k], error[1][k]);
}

template <search::Effort effort>
void Encoder<Q4_S>::encode(const float* values, const float* weights, Q4_S::Block& block) noexcept {
  using search::ShiftedLevels;
  float peak = 0;
  for (std::size_t i = 0; i < 32; ++i) peak = std::max(peak, std::fabs(values[i]));
  // Scales are at most an eighth apart, so that only those next to the one that fits the peak are tried.
  const int first = Q4_S::nearest_scale(peak / 40) - 4;
  float scale[count], inverse[count], miss[count] = {};
  for (std::size_t k = 0; k < count; ++k) {
    const int bits = std::clamp(first + static_cast<int>(k), 0, 254);
    scale[k] = Q4_S::scale_of(static_cast<std::uint8_t>(bits));
    inverse[k] = search::inverse_or_zero(scale[k]);
  }
  for (std::size_t i = 0; i < 32; i += 4) take_four(values + i, weights + i, scale, inverse, miss);
  const std::size_t best = static_cast<std::size_t>(std::min_element(miss, miss + count) - miss);
  unsigned shifts = 0;
  std::uint8_t codes[32];
  for (std::size_t i = 0; i < 32; i += 4) {
    float code[2][4], error[2] = {};
    for (std::size_t shift = 0; shift < 2; ++shift) {
      for (std::size_t j = 0; j < 4; ++j) {
        const auto by = static_cast<float>(shift);
        code[shift][j] = ShiftedLevels::code(ShiftedLevels::place(values[i + j] * inverse[best]), by);
        const float off = values[i + j] - scale[best] * ShiftedLevels::level(code[shift][j], by);
        error[shift] += weights[i + j] * off * off;
      }
    }
    const std::size_t shift = error[1] < error[0] ? 1 : 0;
    shifts |= static_cast<unsigned>(shift) << (i / 4);
    for (std::size_t j = 0; j < 4; ++j) codes[i + j] = static_cast<std::uint8_t>(code[shift][j]);
  }
  const int bits = std::clamp(first + static_cast<int>(best), 0, 254);
  block.d = Q4_S::d(static_cast<std::uint8_t>(bits), static_cast<std::uint8_t>(shifts));
  search::pack_nibbles(codes, 16, block.nibbles);
}

}  // namespace mica::format
