// SPDX-License-Identifier: Apache-2.0
//
// Q5_0: 32 five-bit codes and one half-precision scale.
//
//   block of 22 bytes:  | d (f16) | 4 bytes: high bits | 16 bytes |       value = d * (code - 16)
//   byte j holds the low four bits of value j in its low nibble and those of value j + 16 in its high nibble
//   bit i of the 32 high bits belongs to value i
#pragma once

#include "mica/format/detail/fifth_bits.hpp"
#include "mica/format/detail/unpacked.hpp"

namespace mica::format {

struct Q5_0 {
  static constexpr Id id{6};
  static constexpr std::string_view name = "Q5_0";
  static constexpr std::size_t block_size = 32;
  static constexpr Arithmetic arithmetic = Arithmetic::integer;
  static constexpr bool vector_codec = true;

  struct Block {
    Half d;
    std::uint8_t high[4];
    std::uint8_t nibbles[16];
  };

  static void decode(const Block& block, float* values) noexcept {
    detail::decode_unpacked<Q5_0>(block, values);
  }

  // Required by IntegerFormat
  static constexpr std::size_t group = 32;
  static constexpr bool has_mins = false;
  static constexpr int code_offset = 16;
  static constexpr int code_max = 31;
  static void unpack(const Block& block, Codes<32, 32>& out) noexcept;

  // Required by PackableFormat
  static constexpr std::size_t codes_at = 2;
  static constexpr std::size_t code_bytes = 20;
  static constexpr std::uint32_t pack_word(std::size_t w, std::uint32_t file) noexcept {
    return w == 0 ? detail::pack_fifth_bits(file) : file;
  }
  static constexpr std::uint32_t unpack_word(std::size_t w, std::uint32_t packed) noexcept {
    return w == 0 ? detail::unpack_fifth_bits(packed) : packed;
  }
};

inline void Q5_0::unpack(const Block& block, Codes<32, 32>& out) noexcept {
  for (std::size_t i = 0; i < block_size; ++i) {
    const int low = i < 16 ? block.nibbles[i] & 15 : block.nibbles[i - 16] >> 4;
    const int high = (block.high[i / 8] >> (i % 8)) & 1;
    out.code[i] = static_cast<std::int8_t>((low | (high << 4)) - 16);
  }
  detail::set_scale(out, to_float(block.d));
}

static_assert(sizeof(Q5_0::Block) == 22 && IntegerFormat<Q5_0>);

}  // namespace mica::format
