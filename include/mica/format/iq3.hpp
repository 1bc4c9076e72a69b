// SPDX-License-Identifier: Apache-2.0
//
// IQ3_XXS and IQ3_S: 256 values in eight groups of 32, each with a four-bit scale; four values are the
// magnitudes of one entry of a codebook, with signs.
#pragma once

#include "mica/format/detail/codebooks.hpp"
#include "mica/format/detail/unpacked.hpp"

namespace mica::format {

/// 256 entries; eight values have seven signs.
///
///   block of 98 bytes:  | d (f16) | 64 bytes: entries | 8 x 32 bits |
///   value = d / 4 * (2 scale[g] + 1) * (magnitude with its sign)
///   the 32 bits, from the lowest: four times seven signs (the eighth makes their number even), then the scale
struct IQ3_XXS : detail::IntegerBlocks<IQ3_XXS, 256, 32> {
  static constexpr Id id{18};
  static constexpr std::string_view name = "IQ3_XXS";

  struct Block {
    Half d;
    std::uint8_t entries[64];
    std::uint16_t halves[16];  // signs and scales
  };

  // Required by IntegerFormat
  static constexpr int code_offset = 62;
  static constexpr int code_max = 124;
  static void unpack(const Block& block, Codes<256, 32>& out) noexcept {
    for (std::size_t j = 0; j < 64; ++j) {
      const unsigned signs = codebook::even_signs((bits(block, j / 8) >> (j / 2 % 4 * 7)) & 127);
      codebook::spell<3, 4>(codebook::iq3_xxs_levels, codebook::iq3_xxs[block.entries[j]],
                            signs >> (j % 2 * 4), out.code + 4 * j);
    }
    detail::set_scales(out, to_float(block.d) * 0.25f,
                       [&block](std::size_t g) { return 2 * (bits(block, g) >> 28) + 1; });
  }

  // Specific to IQ3_XXS
  /// Signs and scale of group g.
  [[nodiscard]] static std::uint32_t bits(const Block& block, std::size_t g) noexcept {
    return block.halves[2 * g] | std::uint32_t{block.halves[2 * g + 1]} << 16;
  }
};

/// 512 entries; each value has its sign.
///
///   block of 110 bytes:  | d (f16) | 64 bytes: low eight bits of entries | 8 bytes: ninth bits | 32 bytes of signs |
///                        | 4 bytes of scales |
///   value = d * (2 scale[g] + 1) * (magnitude with its sign)
///   the ninth bit of entry j is bit j % 8 of byte j / 8; scale g is nibble g % 2 of byte g / 2
struct IQ3_S : detail::IntegerBlocks<IQ3_S, 256, 32> {
  static constexpr Id id{21};
  static constexpr std::string_view name = "IQ3_S";

  struct Block {
    Half d;
    std::uint8_t low[64];
    std::uint8_t high[8];
    std::uint8_t signs[32];
    std::uint8_t scales[4];
  };

  // Required by IntegerFormat
  static constexpr int code_offset = 15;
  static constexpr int code_max = 30;
  static void unpack(const Block& block, Codes<256, 32>& out) noexcept {
    for (std::size_t j = 0; j < 64; ++j) {
      codebook::spell<3, 4>(codebook::iq3_s_levels, codebook::iq3_s[entry(block, j)],
                            unsigned{block.signs[j / 2]} >> (j % 2 * 4), out.code + 4 * j);
    }
    detail::set_scales(out, to_float(block.d),
                       [&block](std::size_t g) { return codebook::odd_scale(block.scales, g); });
  }

  // Specific to IQ3_S
  /// The number of the entry of values [4 j, 4 j + 4).
  [[nodiscard]] static unsigned entry(const Block& block, std::size_t j) noexcept {
    return block.low[j] | ((block.high[j / 8] >> (j % 8)) & 1u) << 8;
  }
};

static_assert(sizeof(IQ3_XXS::Block) == 98 && IntegerFormat<IQ3_XXS>);
static_assert(sizeof(IQ3_S::Block) == 110 && IntegerFormat<IQ3_S>);

}  // namespace mica::format
