// SPDX-License-Identifier: Apache-2.0
//
// The values of a block as a search sees them: finite, and in units of a power of two in which the largest
// lies between 1 and 2, so that squares neither overflow nor vanish and rounding is what it would have been
// without the unit.
#pragma once

#include "mica/base/half.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace mica::format::search {

/// The Half nearest to x; the largest one for what is larger, and 0 for what is no number.
[[nodiscard]] inline Half finite_half(float x) noexcept {
  return x == x ? to_half(std::clamp(x, -65504.0f, 65504.0f)) : Half{0};
}

/// `scale` times `unit` as F16. A scale that is not 0 becomes at least the smallest F16: codes can correct a
/// scale that is too large, but not one of 0.
[[nodiscard]] inline Half stored_scale(float scale, float unit) noexcept {
  Half half = finite_half(scale * unit);
  if (scale != 0 && (half.bits & 0x7FFFu) == 0) half.bits = static_cast<std::uint16_t>(half.bits | 1u);
  return half;
}

/// N values in units of `unit`, with their weights. What is not finite is 0.
template <std::size_t N>
struct Values {
  float x[N];  // values / unit
  float w[N];  // as they were given
  float unit;  // negative where the block is searched upside down

  /// Both have N numbers.
  Values(const float* values, const float* weights) noexcept {
    std::uint32_t top = 0;  // magnitudes are ordered as their bits are
    for (std::size_t i = 0; i < N; ++i) {
      const std::uint32_t bits = std::bit_cast<std::uint32_t>(values[i]) & 0x7FFFFFFFu;
      top = std::max(top, bits < 0x7F800000u ? bits : 0);
    }
    const int exponent = std::clamp(static_cast<int>(top >> 23) - 127, -126, 126);
    unit = std::ldexp(1.0f, exponent);
    const float inverse = std::ldexp(1.0f, -exponent);
    for (std::size_t i = 0; i < N; ++i) {
      x[i] = std::isfinite(values[i]) ? values[i] * inverse : 0.0f;
      w[i] = weights[i];
    }
  }

  /// Searches for -x instead.
  void turn() noexcept {
    for (float& value : x) value = -value;
    unit = -unit;
  }

  /// stored_scale() in the values' own units.
  [[nodiscard]] Half stored(float scale) const noexcept { return stored_scale(scale, unit); }

  /// And back: what the file's reader will compute with.
  [[nodiscard]] float loaded(Half scale) const noexcept { return to_float(scale) / unit; }
};

}  // namespace mica::format::search
