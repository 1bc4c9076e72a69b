// SPDX-License-Identifier: Apache-2.0
//
// IQ2_XXS, IQ2_XS and IQ2_S: eight values are the magnitudes of one entry of a codebook, with signs, times a
// four-bit scale.
//
//   value = d / 8 * (2 scale[g] + 1) * (magnitude with its sign)
#pragma once

#include "mica/format/detail/codebooks.hpp"
#include "mica/format/detail/unpacked.hpp"

namespace mica::format {

/// 256 values in eight groups of 32; 256 entries with seven signs.
///
///   block of 66 bytes:  | d (f16) | 8 groups |       group:  | 4 bytes: entries | 32 bits |
///   the 32 bits, from the lowest: four times seven signs (the eighth makes their number even), then the scale
struct IQ2_XXS : detail::IntegerBlocks<IQ2_XXS, 256, 32> {
  static constexpr Id id{16};
  static constexpr std::string_view name = "IQ2_XXS";

  /// The eight bytes of 32 values.
  struct Group {
    std::uint8_t entries[4];  // of the codebook, eight values each
    std::uint16_t low, high;  // halves of bits()

    /// Four times seven signs, then the scale.
    [[nodiscard]] std::uint32_t bits() const noexcept { return low | std::uint32_t{high} << 16; }
  };
  struct Block {
    Half d;
    Group groups[8];
  };

  // Required by IntegerFormat
  static constexpr int code_offset = 43;
  static constexpr int code_max = 86;
  static void unpack(const Block& block, Codes<256, 32>& out) noexcept {
    for (std::size_t j = 0; j < 32; ++j) {
      const Group& from = block.groups[j / 4];
      codebook::spell<2, 8>(codebook::iq2_levels, codebook::iq2_xxs[from.entries[j % 4]],
                            codebook::even_signs((from.bits() >> (7 * (j % 4))) & 127), out.code + 8 * j);
    }
    detail::set_scales(out, to_float(block.d) * 0.125f,
                       [&block](std::size_t g) { return 2 * (block.groups[g].bits() >> 28) + 1; });
  }
};

/// 256 values in sixteen groups of 16; 512 entries with seven signs.
///
///   block of 74 bytes:  | d (f16) | 32 x 16 bits | 8 bytes of scales |
///   16 bits, from the lowest: nine of the entry, seven signs (the eighth makes their number even)
///   scale g is nibble g % 2 of byte g / 2
struct IQ2_XS : detail::IntegerBlocks<IQ2_XS, 256, 16> {
  static constexpr Id id{17};
  static constexpr std::string_view name = "IQ2_XS";

  struct Block {
    Half d;
    std::uint16_t words[32];
    std::uint8_t scales[8];
  };

  // Required by IntegerFormat
  static constexpr int code_offset = 43;
  static constexpr int code_max = 86;
  static void unpack(const Block& block, Codes<256, 16>& out) noexcept {
    for (std::size_t j = 0; j < 32; ++j) {
      const unsigned word = block.words[j];
      codebook::spell<2, 8>(codebook::iq2_levels, codebook::iq2_xs[word & 511],
                            codebook::even_signs(word >> 9), out.code + 8 * j);
    }
    detail::set_scales(out, to_float(block.d) * 0.125f,
                       [&block](std::size_t g) { return codebook::odd_scale(block.scales, g); });
  }
};

/// 256 values in sixteen groups of 16; 1024 entries with eight signs.
///
///   block of 82 bytes:  | d (f16) | 32 bytes: low eight bits of entries | 32 bytes of signs |
///                       | 8 bytes: high two bits of entries | 8 bytes of scales |
///   the high bits of entry j are bits 2 (j % 4) and up of byte j / 4; scale g is nibble g % 2 of byte g / 2
struct IQ2_S : detail::IntegerBlocks<IQ2_S, 256, 16> {
  static constexpr Id id{22};
  static constexpr std::string_view name = "IQ2_S";

  struct Block {
    Half d;
    std::uint8_t low[32];
    std::uint8_t signs[32];
    std::uint8_t high[8];
    std::uint8_t scales[8];
  };

  // Required by IntegerFormat
  static constexpr int code_offset = 43;
  static constexpr int code_max = 86;
  static void unpack(const Block& block, Codes<256, 16>& out) noexcept {
    for (std::size_t j = 0; j < 32; ++j) {
      codebook::spell<2, 8>(codebook::iq2_levels, codebook::iq2_s[entry(block, j)], block.signs[j],
                            out.code + 8 * j);
    }
    detail::set_scales(out, to_float(block.d) * 0.125f,
                       [&block](std::size_t g) { return codebook::odd_scale(block.scales, g); });
  }

  // Specific to IQ2_S
  /// The number of the entry of values [8 j, 8 j + 8).
  [[nodiscard]] static unsigned entry(const Block& block, std::size_t j) noexcept {
    return block.low[j] | ((block.high[j / 4] >> (j % 4 * 2)) & 3u) << 8;
  }
};

static_assert(sizeof(IQ2_XXS::Block) == 66 && IntegerFormat<IQ2_XXS>);
static_assert(sizeof(IQ2_XS::Block) == 74 && IntegerFormat<IQ2_XS>);
static_assert(sizeof(IQ2_S::Block) == 82 && IntegerFormat<IQ2_S>);

}  // namespace mica::format
