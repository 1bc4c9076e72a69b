// SPDX-License-Identifier: Apache-2.0
//
// Q2_0: 64 two-bit codes and one half-precision scale.
//
//   block of 18 bytes:  | d (f16) | 16 bytes |       value = d * (code - 1)
//   byte i / 4 holds value i in its bits 2 (i % 4) and 2 (i % 4) + 1
#pragma once

#include "mica/format/detail/unpacked.hpp"

namespace mica::format {

struct Q2_0 {
  static constexpr Id id{42};
  static constexpr std::string_view name = "Q2_0";
  static constexpr std::size_t block_size = 64;
  static constexpr Arithmetic arithmetic = Arithmetic::integer;
  static constexpr bool vector_codec = true;

  struct Block {
    Half d;
    std::uint8_t pairs[16];
  };

  static void decode(const Block& block, float* values) noexcept {
    detail::decode_unpacked<Q2_0>(block, values);
  }

  // Required by IntegerFormat
  static constexpr std::size_t group = 32;
  static constexpr bool has_mins = false;
  static constexpr int code_offset = 1;
  static constexpr int code_max = 3;
  static void unpack(const Block& block, Codes<64, 32>& out) noexcept;
};

inline void Q2_0::unpack(const Block& block, Codes<64, 32>& out) noexcept {
  for (std::size_t i = 0; i < block_size; ++i) {
    out.code[i] = static_cast<std::int8_t>((block.pairs[i / 4] >> (2 * (i % 4)) & 3) - 1);
  }
  detail::set_scale(out, to_float(block.d));
}

static_assert(sizeof(Q2_0::Block) == 18 && IntegerFormat<Q2_0>);

}  // namespace mica::format
