// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic on sizes that may come from a file: it reports overflow instead of wrapping.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <optional>

namespace mica {

static_assert(std::endian::native == std::endian::little, "mica reads little-endian files in place");

/// The sum, and the product; empty where it needs more than 64 bits.
[[nodiscard]] constexpr std::optional<std::uint64_t> checked_add(std::uint64_t a, std::uint64_t b) noexcept {
  const std::uint64_t sum = a + b;
  if (sum < a) return std::nullopt;
  return sum;
}
[[nodiscard]] constexpr std::optional<std::uint64_t> checked_mul(std::uint64_t a, std::uint64_t b) noexcept {
  if (a != 0 && b > UINT64_MAX / a) return std::nullopt;
  return a * b;
}

/// ceil(a / b); b > 0.
template <std::unsigned_integral T>
[[nodiscard]] constexpr T ceil_div(T a, T b) noexcept {
  return a / b + (a % b != 0 ? 1 : 0);
}

/// The smallest multiple of b that is not below a; b > 0, the result must fit.
template <std::unsigned_integral T>
[[nodiscard]] constexpr T round_up(T a, T b) noexcept {
  return ceil_div(a, b) * b;
}

}  // namespace mica
