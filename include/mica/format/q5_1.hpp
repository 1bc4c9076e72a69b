// SPDX-License-Identifier: Apache-2.0
//
// Q5_1: 32 five-bit codes, one half-precision scale and one half-precision offset.
//
//   block of 24 bytes:  | d (f16) | m (f16) | 4 bytes: high bits | 16 bytes |       value = d * code + m
//   byte j holds the low four bits of value j in its low nibble and those of value j + 16 in its high nibble
//   bit i of the 32 high bits belongs to value i
//
// Unpacked, the offset is a min of 1 with dmin = -m.
#pragma once

#include "mica/format/detail/fifth_bits.hpp"
#include "mica/format/detail/unpacked.hpp"

namespace mica::format {

struct Q5_1 {
  static constexpr Id id{7};
  static constexpr std::string_view name = "Q5_1";
  static constexpr std::size_t block_size = 32;
  static constexpr Arithmetic arithmetic = Arithmetic::integer;
  static constexpr bool vector_codec = true;

  struct Block {
    Half d;
    Half m;
    std::uint8_t high[4];
    std::uint8_t nibbles[16];
  };

  static void decode(const Block& block, float* values) noexcept {
    detail::decode_unpacked<Q5_1>(block, values);
  }

  // Required by IntegerFormat
  static constexpr std::size_t group = 32;
  static constexpr bool has_mins = true;
  static constexpr int code_offset = 0;
  static constexpr int code_max = 31;
  static void unpack(const Block& block, Codes<32, 32>& out) noexcept;

  // Required by PackableFormat
  static constexpr std::size_t codes_at = 4;
  static constexpr std::size_t code_bytes = 20;
  static constexpr std::uint32_t pack_word(std::size_t w, std::uint32_t file) noexcept {
    return w == 0 ? detail::pack_fifth_bits(file) : file;
  }
  static constexpr std::uint32_t unpack_word(std::size_t w, std::uint32_t packed) noexcept {
    return w == 0 ? detail::unpack_fifth_bits(packed) : packed;
  }
};

inline void Q5_1::unpack(const Block& block, Codes<32, 32>& out) noexcept {
  for (std::size_t i = 0; i < block_size; ++i) {
    const int low = i < 16 ? block.nibbles[i] & 15 : block.nibbles[i - 16] >> 4;
    const int high = (block.high[i / 8] >> (i % 8)) & 1;
    out.code[i] = static_cast<std::int8_t>(low | (high << 4));
  }
  out.scale[0] = out.min[0] = 1;
  out.d = to_float(block.d);
  out.dmin = -to_float(block.m);
}

static_assert(sizeof(Q5_1::Block) == 24 && IntegerFormat<Q5_1>);

}  // namespace mica::format
