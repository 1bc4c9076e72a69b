// SPDX-License-Identifier: Apache-2.0
//
// TQ2_0: 256 ternary codes, two bits each, and one half-precision scale. The fourth code is unused and means
// 2.
//
//   block of 66 bytes:  | 64 bytes | d (f16) |       value = d * (code - 1)
//
// With j in 0..31 and quarter c in 0..3, value 32 c + j of half h lies in byte 32 h + j, bits 2c and 2c + 1.
#pragma once

#include "mica/format/detail/unpacked.hpp"

namespace mica::format {

struct TQ2_0 {
  static constexpr Id id{35};
  static constexpr std::string_view name = "TQ2_0";
  static constexpr std::size_t block_size = 256;
  static constexpr Arithmetic arithmetic = Arithmetic::integer;
  static constexpr bool vector_codec = true;

  struct Block {
    std::uint8_t pairs[64];
    Half d;
  };

  static void decode(const Block& block, float* values) noexcept {
    detail::decode_unpacked<TQ2_0>(block, values);
  }

  // Required by IntegerFormat
  static constexpr std::size_t group = 32;
  static constexpr bool has_mins = false;
  static constexpr int code_offset = 1;
  static constexpr int code_max = 3;
  static void unpack(const Block& block, Codes<256, 32>& out) noexcept;

  // Required by PackableFormat
  static constexpr std::size_t codes_at = 0;
  static constexpr std::size_t code_bytes = 64;
};

inline void TQ2_0::unpack(const Block& block, Codes<256, 32>& out) noexcept {
  for (std::size_t i = 0; i < block_size; ++i) {
    const std::size_t half = i / 128, c = i % 128 / 32, j = i % 32;
    out.code[i] = static_cast<std::int8_t>(((block.pairs[32 * half + j] >> (2 * c)) & 3) - 1);
  }
  detail::set_scale(out, to_float(block.d));
}

static_assert(sizeof(TQ2_0::Block) == 66 && IntegerFormat<TQ2_0>);

}  // namespace mica::format
