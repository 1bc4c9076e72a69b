// SPDX-License-Identifier: Apache-2.0
//
// Q2_K: 256 two-bit codes in sixteen groups of 16, each with a four-bit scale and a four-bit min.
//
//   block of 84 bytes:  | 16 bytes: scale (low nibble) and min (high nibble) | 64 bytes | d (f16) | dmin (f16) |
//   value = d * scale[g] * code - dmin * min[g]
//
// With j in 0..31 and quarter c in 0..3, value 32 c + j of half h lies in byte 32 h + j, bits 2c and 2c + 1.
#pragma once

#include "mica/format/detail/unpacked.hpp"

namespace mica::format {

struct Q2_K {
  static constexpr Id id{10};
  static constexpr std::string_view name = "Q2_K";
  static constexpr std::size_t block_size = 256;
  static constexpr Arithmetic arithmetic = Arithmetic::integer;
  static constexpr bool vector_codec = true;

  struct Block {
    std::uint8_t scales[16];
    std::uint8_t pairs[64];
    Half d;
    Half dmin;
  };

  static void decode(const Block& block, float* values) noexcept {
    detail::decode_unpacked<Q2_K>(block, values);
  }

  // Required by IntegerFormat
  static constexpr std::size_t group = 16;
  static constexpr bool has_mins = true;
  static constexpr int code_offset = 0;
  static constexpr int code_max = 3;
  static void unpack(const Block& block, Codes<256, 16>& out) noexcept;

  // Required by PackableFormat
  static constexpr std::size_t codes_at = 16;
  static constexpr std::size_t code_bytes = 64;
};

inline void Q2_K::unpack(const Block& block, Codes<256, 16>& out) noexcept {
  for (std::size_t i = 0; i < block_size; ++i) {
    const std::size_t half = i / 128, c = i % 128 / 32, j = i % 32;
    out.code[i] = static_cast<std::int8_t>((block.pairs[32 * half + j] >> (2 * c)) & 3);
  }
  for (std::size_t g = 0; g < 16; ++g) {
    out.scale[g] = block.scales[g] & 15;
    out.min[g] = block.scales[g] >> 4;
  }
  out.d = to_float(block.d);
  out.dmin = to_float(block.dmin);
}

static_assert(sizeof(Q2_K::Block) == 84 && IntegerFormat<Q2_K>);

}  // namespace mica::format
