// SPDX-License-Identifier: Apache-2.0
//
// Q5_K: 256 five-bit codes in eight groups of 32, each with a six-bit scale and a six-bit min.
//
//   block of 176 bytes:  | d (f16) | dmin (f16) | 12 bytes of scales and mins | 32 bytes: high bits | 128 bytes |
//   value = d * scale[g] * code - dmin * min[g]; scales and mins are packed as in Q4_K
//
// With j in 0..31, value 32 g + j has
//   low bits   byte 32 (g / 2) + j, low nibble for even g and high nibble otherwise
//   high bit   byte j, bit g
#pragma once

#include "mica/format/detail/unpacked.hpp"
#include "mica/format/q4_k.hpp"

namespace mica::format {

struct Q5_K {
  static constexpr Id id{13};
  static constexpr std::string_view name = "Q5_K";
  static constexpr std::size_t block_size = 256;
  static constexpr Arithmetic arithmetic = Arithmetic::integer;
  static constexpr bool vector_codec = true;

  struct Block {
    Half d;
    Half dmin;
    std::uint8_t scales[12];
    std::uint8_t high[32];
    std::uint8_t nibbles[128];
  };

  static void decode(const Block& block, float* values) noexcept {
    detail::decode_unpacked<Q5_K>(block, values);
  }

  // Required by IntegerFormat
  static constexpr std::size_t group = 32;
  static constexpr bool has_mins = true;
  static constexpr int code_offset = 0;
  static constexpr int code_max = 31;
  static void unpack(const Block& block, Codes<256, 32>& out) noexcept;

  // Required by PackableFormat
  static constexpr std::size_t codes_at = 16;
  static constexpr std::size_t code_bytes = 160;
};

inline void Q5_K::unpack(const Block& block, Codes<256, 32>& out) noexcept {
  for (std::size_t i = 0; i < block_size; ++i) {
    const std::size_t g = i / 32, j = i % 32;
    const int byte = block.nibbles[g / 2 * 32 + j];
    const int high = (block.high[j] >> g) & 1;
    out.code[i] = static_cast<std::int8_t>((g % 2 == 0 ? byte & 15 : byte >> 4) | (high << 4));
  }
  std::uint8_t scale[8], min[8];
  Q4_K::unpack_scales(block.scales, scale, min);
  for (std::size_t g = 0; g < 8; ++g) {
    out.scale[g] = scale[g];
    out.min[g] = min[g];
  }
  out.d = to_float(block.d);
  out.dmin = to_float(block.dmin);
}

static_assert(sizeof(Q5_K::Block) == 176 && IntegerFormat<Q5_K>);

}  // namespace mica::format
