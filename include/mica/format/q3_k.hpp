// SPDX-License-Identifier: Apache-2.0
//
// Q3_K: 256 three-bit codes in sixteen groups of 16, each with a six-bit scale.
//
//   block of 110 bytes:  | 32 bytes: high bits | 64 bytes: low two bits | 12 bytes of scales | d (f16) |
//   value = d * (scale[g] - 32) * (code - 4)
//
// With j in 0..31 and quarter c in 0..3, value 32 c + j of half h has
//   low bits   byte 32 h + j, bits 2c and 2c + 1
//   high bit   byte j, bit 4 h + c
//
//   scale bytes   0..7                                       8..11
//   bits          low nibble: scale 0..7, high: scale 8..15  byte 8 + g % 4, bits 2 (g / 4) and 2 (g / 4) + 1:
//                 (their lower four bits)                    the upper two bits of scale g
#pragma once

#include "mica/format/detail/unpacked.hpp"

namespace mica::format {

struct Q3_K {
  static constexpr Id id{11};
  static constexpr std::string_view name = "Q3_K";
  static constexpr std::size_t block_size = 256;
  static constexpr Arithmetic arithmetic = Arithmetic::integer;
  static constexpr bool vector_codec = true;

  struct Block {
    std::uint8_t high[32];
    std::uint8_t pairs[64];
    std::uint8_t scales[12];
    Half d;
  };

  static void decode(const Block& block, float* values) noexcept {
    detail::decode_unpacked<Q3_K>(block, values);
  }

  // Required by IntegerFormat
  static constexpr std::size_t group = 16;
  static constexpr bool has_mins = false;
  static constexpr int code_offset = 4;
  static constexpr int code_max = 7;
  static void unpack(const Block& block, Codes<256, 16>& out) noexcept;

  // Required by PackableFormat
  static constexpr std::size_t codes_at = 0;
  static constexpr std::size_t code_bytes = 96;
};

inline void Q3_K::unpack(const Block& block, Codes<256, 16>& out) noexcept {
  for (std::size_t i = 0; i < block_size; ++i) {
    const std::size_t half = i / 128, c = i % 128 / 32, j = i % 32;
    const int low = (block.pairs[32 * half + j] >> (2 * c)) & 3;
    const int high = (block.high[j] >> (4 * half + c)) & 1;
    out.code[i] = static_cast<std::int8_t>((low | (high << 2)) - 4);
  }
  for (std::size_t g = 0; g < 16; ++g) {
    const int low = g < 8 ? block.scales[g] & 15 : block.scales[g - 8] >> 4;
    const int high = (block.scales[8 + g % 4] >> (2 * (g / 4))) & 3;
    out.scale[g] = static_cast<std::int16_t>((low | (high << 4)) - 32);
    out.min[g] = 0;
  }
  out.d = to_float(block.d);
  out.dmin = 0;
}

static_assert(sizeof(Q3_K::Block) == 110 && IntegerFormat<Q3_K>);

}  // namespace mica::format
