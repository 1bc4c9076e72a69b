// SPDX-License-Identifier: Apache-2.0
//
// IQ4_XS: 256 four-bit codes with the levels of IQ4_NL, in eight groups of 32, each with a six-bit scale.
//
//   block of 136 bytes:  | d (f16) | 16 bits: high scale bits | 4 bytes: low scale bits | 128 bytes of nibbles |
//   value = d * (scale[g] - 32) * levels[code]
//   nibble byte 16 g + j holds value 32 g + j (low) and value 32 g + 16 + j (high)
//
//   scale g   low four bits: nibble g % 2 of byte g / 2, high two bits: bits 2g and 2g + 1 of the 16
#pragma once

#include "mica/format/iq4_nl.hpp"

namespace mica::format {

struct IQ4_XS {
  static constexpr Id id{23};
  static constexpr std::string_view name = "IQ4_XS";
  static constexpr std::size_t block_size = 256;
  static constexpr Arithmetic arithmetic = Arithmetic::integer;
  static constexpr bool vector_codec = true;

  struct Block {
    Half d;
    std::uint16_t scales_high;
    std::uint8_t scales_low[4];
    std::uint8_t nibbles[128];
  };

  static void decode(const Block& block, float* values) noexcept {
    detail::decode_unpacked<IQ4_XS>(block, values);
  }

  // Required by IntegerFormat
  static constexpr std::size_t group = 32;
  static constexpr bool has_mins = false;
  static constexpr int code_offset = IQ4_NL::code_offset;
  static constexpr int code_max = IQ4_NL::code_max;
  static void unpack(const Block& block, Codes<256, 32>& out) noexcept;

  // Required by PackableFormat
  static constexpr std::size_t codes_at = 8;
  static constexpr std::size_t code_bytes = 128;
};

inline void IQ4_XS::unpack(const Block& block, Codes<256, 32>& out) noexcept {
  for (std::size_t g = 0; g < 8; ++g) {
    for (std::size_t j = 0; j < 16; ++j) {
      out.code[32 * g + j] = IQ4_NL::levels[block.nibbles[16 * g + j] & 15];
      out.code[32 * g + 16 + j] = IQ4_NL::levels[block.nibbles[16 * g + j] >> 4];
    }
    const int low = (block.scales_low[g / 2] >> (g % 2 * 4)) & 15;
    const int high = (block.scales_high >> (2 * g)) & 3;
    out.scale[g] = static_cast<std::int16_t>((low | (high << 4)) - 32);
    out.min[g] = 0;
  }
  out.d = to_float(block.d);
  out.dmin = 0;
}

static_assert(sizeof(IQ4_XS::Block) == 136 && IntegerFormat<IQ4_XS>);

}  // namespace mica::format
