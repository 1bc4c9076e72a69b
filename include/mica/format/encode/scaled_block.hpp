// SPDX-License-Identifier: Apache-2.0
//
// A block with one scale: value = d * level, d a half float.
#pragma once

#include "mica/format/encode/scale.hpp"
#include "mica/format/encode/values.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace mica::format::search {

/// Of the half floats around `scale`, also 0 where it is that small, the one with the least weighted error.
template <class Levels, std::size_t N>
[[nodiscard]] Half choose_half(const Values<N>& values, float scale) noexcept {
  constexpr std::size_t count = 4;
  const Half nearest = values.stored(scale);
  Half half[count];
  float loaded[count], inverse[count], error[count] = {};
  for (std::size_t k = 0; k < count; ++k) {
    const int magnitude = (nearest.bits & 0x7FFF) + static_cast<int>(k) - 1;
    const bool finite = magnitude >= 0 && magnitude < 0x7C00;
    half[k] = finite ? Half{static_cast<std::uint16_t>(magnitude | (nearest.bits & 0x8000))} : nearest;
    loaded[k] = values.loaded(half[k]);
    inverse[k] = inverse_or_zero(loaded[k]);
  }
  for (std::size_t i = 0; i < N; ++i) {
    float q[count];
    for (std::size_t k = 0; k < count; ++k) q[k] = values.x[i] * inverse[k];
    Levels::settle(q);
    for (std::size_t k = 0; k < count; ++k) {
      const float miss = values.x[i] - loaded[k] * q[k];
      error[k] += values.w[i] * miss * miss;
    }
  }
  return half[std::min_element(error, error + count) - error];
}

/// The d with about the least weighted error.
template <class Levels, Effort effort = Effort::thorough, std::size_t N>
[[nodiscard]] Half find_half(const Values<N>& values, Reach reach = {}) noexcept {
  const float scale = find_scale<Levels, effort>(values.x, values.w, N, reach).value;
  if constexpr (effort == Effort::quick) return values.stored(scale);
  return choose_half<Levels>(values, scale);
}

/// The nearest levels for the d that is stored, each less `first`, so that codes that count from 0 come out.
template <class Levels, std::size_t N>
void take_nearest(const Values<N>& values, Half d, int first, std::uint8_t* codes) noexcept {
  const float inverse = inverse_or_zero(values.loaded(d));
  float q[N];
  for (std::size_t i = 0; i < N; ++i) q[i] = values.x[i] * inverse;
  Levels::settle(q);
  for (std::size_t i = 0; i < N; ++i) codes[i] = static_cast<std::uint8_t>(static_cast<int>(q[i]) - first);
}

}  // namespace mica::format::search
