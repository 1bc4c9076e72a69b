// SPDX-License-Identifier: Apache-2.0
//
// Codes of the K formats, the ternary ones and those with codebooks put into bytes, as format/encode/pack.hpp
// does for others.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mica::format::search {

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

/// 2 n codes of four bits: code i is nibble i % 2 of byte i / 2.
template <std::size_t n>
void pack_adjacent_nibbles(const std::uint8_t (&codes)[2 * n], std::uint8_t (&bytes)[n]) noexcept {
  for (std::size_t j = 0; j < n; ++j)
    bytes[j] = static_cast<std::uint8_t>(codes[2 * j] | codes[2 * j + 1] << 4);
}

/// The n codes of an unpacked block, counted from 0.
template <class Parts>
void count_from_zero(const Parts& parts, int first, std::size_t n, std::uint8_t* codes) noexcept {
  for (std::size_t i = 0; i < n; ++i) codes[i] = static_cast<std::uint8_t>(parts.code[i] - first);
}

}  // namespace mica::format::search
