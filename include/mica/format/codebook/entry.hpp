// SPDX-License-Identifier: Apache-2.0
//
// From an entry of a codebook to codes: magnitudes that few bits choose, and one bit for each sign.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace mica::format::codebook {

/// Seven signs in a file mean eight: an even number of them is set.
[[nodiscard]] constexpr unsigned even_signs(unsigned seven) noexcept {
  return seven | (static_cast<unsigned>(std::popcount(seven)) & 1u) << 7;
}

/// The n values of an entry, `bits` each; value i is negative where bit i of `signs` is set.
template <unsigned bits, std::size_t n>
constexpr void spell(const std::int8_t* levels, unsigned entry, unsigned signs, std::int8_t* code) noexcept {
  for (std::size_t i = 0; i < n; ++i) {
    const int level = levels[(entry >> (bits * i)) & ((1u << bits) - 1)];
    code[i] = static_cast<std::int8_t>((signs >> i) & 1u ? -level : level);
  }
}

static_assert(even_signs(0) == 0 && even_signs(1) == 0x81 && even_signs(0x7F) == 0xFF);

}  // namespace mica::format::codebook
