// SPDX-License-Identifier: Apache-2.0
//
// IQ4_NL and IQ4_XS: four-bit codes that stand for sixteen uneven levels.
#pragma once

#include "mica/format/detail/unpacked.hpp"

namespace mica::format {

/// 32 codes and one half-precision scale.
///
///   block of 18 bytes:  | d (f16) | 16 bytes |       value = d * levels[code]
///   byte j holds value j in its low nibble and value j + 16 in its high nibble
struct IQ4_NL : detail::IntegerBlocks<IQ4_NL, 32, 32> {
  static constexpr Id id{20};
  static constexpr std::string_view name = "IQ4_NL";

  struct Block {
    Half d;
    std::uint8_t nibbles[16];
  };

  // Required by IntegerFormat
  static constexpr int code_offset = 127;
  static constexpr int code_max = 240;
  static void unpack(const Block& block, Codes<32, 32>& out) noexcept {
    for (std::size_t i = 0; i < block_size; ++i) out.code[i] = levels[detail::nibble(block.nibbles, i)];
    detail::set_scale(out, to_float(block.d));
  }

  // Required by PackableFormat
  static constexpr std::size_t codes_at = 2;
  static constexpr std::size_t code_bytes = 16;

  // Specific to IQ4_NL
  /// What the four-bit codes stand for, here and in IQ4_XS: close together near zero, where weights are many.
  static constexpr std::int8_t levels[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                             1,    13,   25,  38,  53,  69,  89,  113};
};

/// 256 codes with the levels of IQ4_NL, in eight groups of 32, each with a six-bit scale.
///
///   block of 136 bytes:  | d (f16) | 16 bits: high scale bits | 4 bytes: low scale bits | 128 bytes of nibbles |
///   value = d * (scale[g] - 32) * levels[code]
///   nibble byte 16 g + j holds value 32 g + j (low) and value 32 g + 16 + j (high)
///
///   scale g   low four bits: nibble g % 2 of byte g / 2, high two bits: bits 2g and 2g + 1 of the 16
struct IQ4_XS : detail::IntegerBlocks<IQ4_XS, 256, 32> {
  static constexpr Id id{23};
  static constexpr std::string_view name = "IQ4_XS";

  struct Block {
    Half d;
    std::uint16_t scales_high;
    std::uint8_t scales_low[4];
    std::uint8_t nibbles[128];
  };

  // Required by IntegerFormat
  static constexpr int code_offset = IQ4_NL::code_offset;
  static constexpr int code_max = IQ4_NL::code_max;
  static void unpack(const Block& block, Codes<256, 32>& out) noexcept {
    for (std::size_t i = 0; i < block_size; ++i)
      out.code[i] = IQ4_NL::levels[detail::nibble(block.nibbles + i / 32 * 16, i % 32)];
    detail::set_scales(out, to_float(block.d), [&block](std::size_t g) {
      const int low = (block.scales_low[g / 2] >> (g % 2 * 4)) & 15;
      return (low | (block.scales_high >> (2 * g) & 3) << 4) - 32;
    });
  }

  // Required by PackableFormat
  static constexpr std::size_t codes_at = 8;
  static constexpr std::size_t code_bytes = 128;
};

static_assert(sizeof(IQ4_NL::Block) == 18 && IntegerFormat<IQ4_NL>);
static_assert(sizeof(IQ4_XS::Block) == 136 && IntegerFormat<IQ4_XS>);

}  // namespace mica::format
