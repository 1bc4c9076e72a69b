// SPDX-License-Identifier: Apache-2.0
//
// Q4_1: 32 four-bit codes, one half-precision scale and one half-precision offset.
//
//   block of 20 bytes:  | d (f16) | m (f16) | 16 bytes |       value = d * code + m
//   byte j holds value j in its low nibble and value j + 16 in its high nibble
//
// Unpacked, the offset is a min of 1 with dmin = -m.
#pragma once

#include "mica/format/detail/unpacked.hpp"

namespace mica::format {

struct Q4_1 {
  static constexpr Id id{3};
  static constexpr std::string_view name = "Q4_1";
  static constexpr std::size_t block_size = 32;
  static constexpr Arithmetic arithmetic = Arithmetic::integer;
  static constexpr bool vector_codec = true;

  struct Block {
    Half d;
    Half m;
    std::uint8_t nibbles[16];
  };

  static void decode(const Block& block, float* values) noexcept {
    detail::decode_unpacked<Q4_1>(block, values);
  }

  // Required by IntegerFormat
  static constexpr std::size_t group = 32;
  static constexpr bool has_mins = true;
  static constexpr int code_offset = 0;
  static constexpr int code_max = 15;
  static void unpack(const Block& block, Codes<32, 32>& out) noexcept;

  // Required by PackableFormat
  static constexpr std::size_t codes_at = 4;
  static constexpr std::size_t code_bytes = 16;
};

inline void Q4_1::unpack(const Block& block, Codes<32, 32>& out) noexcept {
  for (std::size_t j = 0; j < 16; ++j) {
    out.code[j] = static_cast<std::int8_t>(block.nibbles[j] & 15);
    out.code[j + 16] = static_cast<std::int8_t>(block.nibbles[j] >> 4);
  }
  out.scale[0] = out.min[0] = 1;
  out.d = to_float(block.d);
  out.dmin = -to_float(block.m);
}

static_assert(sizeof(Q4_1::Block) == 20 && IntegerFormat<Q4_1>);

}  // namespace mica::format
