// SPDX-License-Identifier: Apache-2.0
//
// Q1_0: 128 signs and one half-precision scale.
//
//   block of 18 bytes:  | d (f16) | 16 bytes |       value = bit ? d : -d
//   bit i % 8 of byte i / 8 belongs to value i
#pragma once

#include "mica/format/detail/unpacked.hpp"

namespace mica::format {

struct Q1_0 {
  static constexpr Id id{41};
  static constexpr std::string_view name = "Q1_0";
  static constexpr std::size_t block_size = 128;
  static constexpr Arithmetic arithmetic = Arithmetic::integer;
  static constexpr bool vector_codec = true;

  struct Block {
    Half d;
    std::uint8_t bits[16];
  };

  static void decode(const Block& block, float* values) noexcept {
    detail::decode_unpacked<Q1_0>(block, values);
  }

  // Required by IntegerFormat
  static constexpr std::size_t group = 32;
  static constexpr bool has_mins = false;
  static constexpr int code_offset = 1;
  static constexpr int code_max = 2;
  static void unpack(const Block& block, Codes<128, 32>& out) noexcept;
};

inline void Q1_0::unpack(const Block& block, Codes<128, 32>& out) noexcept {
  for (std::size_t i = 0; i < block_size; ++i) {
    out.code[i] = (block.bits[i / 8] >> (i % 8) & 1) != 0 ? 1 : -1;
  }
  detail::set_scale(out, to_float(block.d));
}

static_assert(sizeof(Q1_0::Block) == 18 && IntegerFormat<Q1_0>);

}  // namespace mica::format
