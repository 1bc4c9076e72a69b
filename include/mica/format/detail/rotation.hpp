// SPDX-License-Identifier: Apache-2.0
//
// An orthogonal rotation of head vectors: the Walsh-Hadamard transform, divided by the root of its size. It
// spreads what lies in a few dimensions over all of them, so that few bits with one scale for many numbers
// lose less, and it changes no dot product of two vectors that are both rotated (S. Ashkboos et al., QuaRot,
// 2024; Z. Liu et al., SpinQuant, 2024).
//
// A width that is no power of two is rotated in parts, the largest power of two first: 80 = 64 + 16. One part
// of n numbers, log2 n times:
//
//   next[i] = x[2 i] + x[2 i + 1],  next[i + n / 2] = x[2 i] - x[2 i + 1]    for i < n / 2
//
// and then every number times 1 / sqrt n. The matrix is symmetric: rotating twice gives back what was there.
#pragma once

#include "mica/base/assert.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <utility>

namespace mica::format {

/// The widest vector that is rotated.
inline constexpr std::size_t max_rotated = 512;

/// The factor of a part of n numbers, n a power of two: 1 / sqrt n.
[[nodiscard]] constexpr float rotation_factor(std::size_t n) noexcept {
  const int power = std::countr_zero(n);
  const float whole = 1.0f / static_cast<float>(std::size_t{1} << (power / 2));
  return power % 2 == 0 ? whole : whole * 0.70710678f;
}

/// Rotates n numbers, at most max_rotated; `out` may be `x`. n log2 n additions.
inline void rotate(const float* x, std::size_t n, float* out) noexcept {
  MICA_ASSERT(n <= max_rotated);
  float buffer[2][max_rotated];
  for (std::size_t first = 0; first < n;) {
    const std::size_t part = std::bit_floor(n - first);
    float *now = buffer[0], *next = buffer[1];
    std::copy_n(x + first, part, now);
    for (std::size_t span = 1; span < part; span *= 2) {
      for (std::size_t i = 0; i < part / 2; ++i) {
        next[i] = now[2 * i] + now[2 * i + 1];
        next[i + part / 2] = now[2 * i] - now[2 * i + 1];
      }
      std::swap(now, next);
    }
    const float factor = rotation_factor(part);
    for (std::size_t i = 0; i < part; ++i) out[first + i] = now[i] * factor;
    first += part;
  }
}

static_assert(rotation_factor(1) == 1 && rotation_factor(64) == 0.125f);

}  // namespace mica::format
