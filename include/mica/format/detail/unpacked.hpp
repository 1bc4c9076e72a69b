// SPDX-License-Identifier: Apache-2.0
//
// What integer formats share: values come out of the parts of a block by one formula (format/concept.hpp).
#pragma once

#include "mica/format/concept.hpp"

namespace mica::format::detail {

/// The base of mica's own integer formats, of blocks of BlockSize values in groups of Group. What F has is its
/// id and name, its block, the other numbers of IntegerFormat, and unpack().
template <class F, std::size_t BlockSize, std::size_t Group>
struct IntegerBlocks {
  static constexpr std::size_t block_size = BlockSize;
  static constexpr std::size_t group = Group;
  static constexpr Arithmetic arithmetic = Arithmetic::integer;
  static constexpr bool vector_codec = true;
  static constexpr bool has_mins = false;  // those that have mins say so

  template <class Block>
  static void decode(const Block& block, float* __restrict values) noexcept {
    Codes<BlockSize, Group> parts;
    F::unpack(block, parts);
    for (std::size_t g = 0; g < BlockSize / Group; ++g) {
      const float d = parts.d * static_cast<float>(parts.scale[g]);
      for (std::size_t i = g * Group; i < (g + 1) * Group; ++i) {
        values[i] = d * static_cast<float>(parts.code[i]);
        if constexpr (F::has_mins) values[i] -= parts.dmin * static_cast<float>(parts.min[g]);
      }
    }
  }
};

/// The scales of a format without mins; scale(g): that of group g.
template <std::size_t BlockSize, std::size_t Group, class Scale>
void set_scales(Codes<BlockSize, Group>& parts, float d, Scale&& scale) noexcept {
  for (std::size_t g = 0; g < BlockSize / Group; ++g) {
    parts.scale[g] = static_cast<std::int32_t>(scale(g));
    parts.min[g] = 0;
  }
  parts.d = d;
  parts.dmin = 0;
}

/// One scale for the whole block and no mins, for formats that have no more than that.
template <std::size_t BlockSize>
void set_scale(Codes<BlockSize, 32>& parts, float d) noexcept {
  set_scales(parts, d, [](std::size_t) { return 1; });
}

/// One scale and one offset for 32 values: the offset m is a min of 1 with dmin = -m.
inline void set_scale_and_offset(Codes<32, 32>& parts, float d, float m) noexcept {
  parts.scale[0] = parts.min[0] = 1;
  parts.d = d;
  parts.dmin = -m;
}

/// Code i of 2 n: the low nibble of byte i for i < n, the high one of byte i - n for others.
[[nodiscard]] constexpr int nibble(const std::uint8_t* bytes, std::size_t i, std::size_t n = 16) noexcept {
  return i < n ? bytes[i] & 15 : bytes[i - n] >> 4;
}

/// Code i of 256 of two bits: with i = 128 h + 32 c + j, c and j below 4 and 32, bits 2 c and 2 c + 1 of byte
/// 32 h + j.
[[nodiscard]] constexpr int bit_pair(const std::uint8_t* bytes, std::size_t i) noexcept {
  return bytes[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
}

}  // namespace mica::format::detail
