// SPDX-License-Identifier: Apache-2.0
//
// Codes put into bytes in the ways that several formats share. Codes count from 0.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mica::format::search {

/// Byte j holds code j in its low nibble and code j + n in its high one; 2 n codes, without higher bits.
inline void pack_nibbles(const std::uint8_t* codes, std::size_t n, std::uint8_t* bytes) noexcept {
  for (std::size_t j = 0; j < n; ++j) {
    bytes[j] = static_cast<std::uint8_t>((codes[j] & 15) | (codes[j + n] & 15) << 4);
  }
}

/// Bit i of 32 is the fifth bit of code i.
inline void pack_fifth_bits(const std::uint8_t* codes, std::uint8_t* bytes) noexcept {
  for (std::size_t j = 0; j < 4; ++j) {
    unsigned byte = 0;
    for (std::size_t k = 0; k < 8; ++k) byte |= (codes[8 * j + k] >> 4 & 1u) << k;
    bytes[j] = static_cast<std::uint8_t>(byte);
  }
}

/// The high bits of 32 codes of six bits, as in Q6_0: byte c holds those of codes c, c + 16, c + 8 and c +
/// 24.
inline void pack_high_pairs(const std::uint8_t* codes, std::uint8_t* bytes) noexcept {
  for (std::size_t c = 0; c < 8; ++c) {
    bytes[c] = static_cast<std::uint8_t>(codes[c] >> 4 | codes[c + 16] >> 4 << 2 | codes[c + 8] >> 4 << 4 |
                                         codes[c + 24] >> 4 << 6);
  }
}

}  // namespace mica::format::search
