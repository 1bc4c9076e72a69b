// SPDX-License-Identifier: Apache-2.0
//
// IEEE binary16 and bfloat16 as storage: 16 bits that become a float and back. All conversions are exact or
// round to nearest even; NaN stays NaN and infinities stay infinite.
#pragma once

#include <bit>
#include <cstdint>

namespace mica {

/// A binary16 number in memory (1 sign, 5 exponent, 10 fraction bits).
struct Half {
  std::uint16_t bits;  // 0x3C00 is 1
};

/// A bfloat16 number in memory: the upper half of a binary32.
struct Bfloat {
  std::uint16_t bits;  // 0x3F80 is 1
};

static_assert(sizeof(Half) == 2 && sizeof(Bfloat) == 2);

/// Exact.
[[nodiscard]] constexpr float to_float(Half h) noexcept {
  const std::uint32_t sign = (h.bits & 0x8000u) << 16;
  const std::uint32_t exponent = (h.bits >> 10) & 0x1Fu;
  const std::uint32_t fraction = h.bits & 0x3FFu;
  if (exponent == 0) {  // zero or subnormal: fraction * 2^-24
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | sign);
  }
  const std::uint32_t biased = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(sign | (biased << 23) | (fraction << 13));
}

/// Exact.
[[nodiscard]] constexpr float to_float(Bfloat b) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(b.bits) << 16);
}

/// Rounds to nearest even; values beyond 65,519.99 become infinite.
[[nodiscard]] constexpr Half to_half(float value) noexcept {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return {static_cast<std::uint16_t>(sign | 0x7E00u)};   // NaN
  if (magnitude >= 0x477FF000u) return {static_cast<std::uint16_t>(sign | 0x7C00u)};  // 65,520 and above
  if (magnitude < 0x38800000u) {  // below 2^-14: subnormal
    const std::uint32_t exponent = magnitude >> 23;
    if (exponent < 102) return {sign};  // below 2^-25: zero
    const std::uint32_t fraction = (magnitude & 0x7FFFFFu) | 0x800000u;
    const std::uint32_t shift = 126 - exponent;  // 14..24
    const std::uint32_t kept = fraction >> shift;
    const std::uint32_t rest = fraction & ((1u << shift) - 1);
    const std::uint32_t half = 1u << (shift - 1);
    const std::uint32_t up = rest > half || (rest == half && (kept & 1u)) ? 1u : 0u;
    return {static_cast<std::uint16_t>(sign | (kept + up))};
  }
  const std::uint32_t rounded = magnitude + 0xFFFu + ((magnitude >> 13) & 1u);
  return {static_cast<std::uint16_t>(sign | ((rounded - 0x38000000u) >> 13))};
}

/// Rounds to nearest even.
[[nodiscard]] constexpr Bfloat to_bfloat(float value) noexcept {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return {static_cast<std::uint16_t>((bits >> 16) | 0x40u)};
  return {static_cast<std::uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16)};
}

}  // namespace mica
