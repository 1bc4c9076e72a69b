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

/// 256 codes of two bits: byte 32 h + j holds codes 128 h + 32 c + j in its bits 2 c and 2 c + 1, after
/// `shift` bits of each code are dropped.
inline void pack_pairs(const std::uint8_t* codes, unsigned shift, std::uint8_t* bytes) noexcept {
  for (std::size_t h = 0; h < 2; ++h) {
    for (std::size_t j = 0; j < 32; ++j) {
      unsigned byte = 0;
      for (std::size_t c = 0; c < 4; ++c) byte |= (codes[128 * h + 32 * c + j] >> shift & 3u) << (2 * c);
      bytes[32 * h + j] = static_cast<std::uint8_t>(byte);
    }
  }
}

/// The n codes of an unpacked block, counted from 0.
template <class Parts>
void count_from_zero(const Parts& parts, int first, std::size_t n, std::uint8_t* codes) noexcept {
  for (std::size_t i = 0; i < n; ++i) codes[i] = static_cast<std::uint8_t>(parts.code[i] - first);
}

}  // namespace mica::format::search
