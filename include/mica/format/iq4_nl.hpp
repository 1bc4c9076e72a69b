// SPDX-License-Identifier: Apache-2.0
//
// IQ4_NL: 32 four-bit codes that stand for sixteen uneven levels, and one half-precision scale.
//
//   block of 18 bytes:  | d (f16) | 16 bytes |       value = d * levels[code]
//   byte j holds value j in its low nibble and value j + 16 in its high nibble
#pragma once

#include "mica/format/detail/unpacked.hpp"

namespace mica::format {

struct IQ4_NL {
  static constexpr Id id{20};
  static constexpr std::string_view name = "IQ4_NL";
  static constexpr std::size_t block_size = 32;
  static constexpr Arithmetic arithmetic = Arithmetic::integer;
  static constexpr bool vector_codec = true;

  struct Block {
    Half d;
    std::uint8_t nibbles[16];
  };

  static void decode(const Block& block, float* values) noexcept {
    detail::decode_unpacked<IQ4_NL>(block, values);
  }

  // Required by IntegerFormat
  static constexpr std::size_t group = 32;
  static constexpr bool has_mins = false;
  static constexpr int code_offset = 127;
  static constexpr int code_max = 240;
  static void unpack(const Block& block, Codes<32, 32>& out) noexcept;

  // Required by PackableFormat
  static constexpr std::size_t codes_at = 2;
  static constexpr std::size_t code_bytes = 16;

  // Specific to IQ4_NL
  /// What the four-bit codes stand for, here and in IQ4_XS: close together near zero, where weights are many.
  static constexpr std::int8_t levels[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                             1,    13,   25,  38,  53,  69,  89,  113};
};

inline void IQ4_NL::unpack(const Block& block, Codes<32, 32>& out) noexcept {
  for (std::size_t j = 0; j < 16; ++j) {
    out.code[j] = levels[block.nibbles[j] & 15];
    out.code[j + 16] = levels[block.nibbles[j] >> 4];
  }
  detail::set_scale(out, to_float(block.d));
}

static_assert(sizeof(IQ4_NL::Block) == 18 && IntegerFormat<IQ4_NL>);

}  // namespace mica::format
