// SPDX-License-Identifier: Apache-2.0
//
// IQ1_S and IQ1_M: eight values are one of 2048 entries of a codebook of -1, 0 and 1, shifted by one eighth
// up or down, times a three-bit scale.
#pragma once

#include "mica/format/detail/codebooks.hpp"
#include "mica/format/detail/unpacked.hpp"

namespace mica::format {

/// 256 values in eight groups of 32, each with a scale and a shift.
///
///   block of 50 bytes:  | d (f16) | 32 bytes: low eight bits of entries | 8 x 16 bits |
///   value = d * (2 scale[g] + 1) * (number + shift[g] / 8) = d / 8 * (2 scale[g] + 1) * (8 number + shift[g])
///   the 16 bits, from the lowest: four times the high three bits of an entry, scale, and 1 for a shift of -1
struct IQ1_S : detail::IntegerBlocks<IQ1_S, 256, 32> {
  static constexpr Id id{19};
  static constexpr std::string_view name = "IQ1_S";

  struct Block {
    Half d;
    std::uint8_t low[32];
    std::uint16_t high[8];
  };

  // Required by IntegerFormat
  static constexpr int code_offset = 9;
  static constexpr int code_max = 18;
  static void unpack(const Block& block, Codes<256, 32>& out) noexcept {
    for (std::size_t j = 0; j < 32; ++j) {
      codebook::spell<2, 8>(codebook::iq1_levels[block.high[j / 4] >> 15], codebook::iq1[entry(block, j)], 0,
                            out.code + 8 * j);
    }
    detail::set_scales(out, to_float(block.d) * 0.125f,
                       [&block](std::size_t g) { return 2 * (block.high[g] >> 12 & 7) + 1; });
  }

  // Specific to IQ1_S
  /// The number of the entry of values [8 j, 8 j + 8).
  [[nodiscard]] static unsigned entry(const Block& block, std::size_t j) noexcept {
    return block.low[j] | ((unsigned{block.high[j / 4]} >> (j % 4 * 3)) & 7u) << 8;
  }
};

/// 256 values in sixteen groups of 16, each with a scale; eight values have a shift.
///
///   block of 56 bytes:  | 32 bytes: low eight bits of entries | 32 nibbles | 4 x 16 bits |
///   value = d * (2 scale[g] + 1) * (number + shift / 8) = d / 8 * (2 scale[g] + 1) * (8 number + shift)
///   a nibble, from the lowest bit: the high three bits of an entry, and 1 for a shift of -1
///   the 16 bits w, from the lowest: scales 4w to 4w + 3, then bits 4w to 4w + 3 of d (f16)
struct IQ1_M : detail::IntegerBlocks<IQ1_M, 256, 16> {
  static constexpr Id id{29};
  static constexpr std::string_view name = "IQ1_M";

  struct Block {
    std::uint8_t low[32];
    std::uint8_t high[16];
    std::uint16_t scales[4];
  };

  // Required by IntegerFormat
  static constexpr int code_offset = 9;
  static constexpr int code_max = 18;
  static void unpack(const Block& block, Codes<256, 16>& out) noexcept {
    for (std::size_t j = 0; j < 32; ++j) {
      const unsigned entry = shifted_entry(block, j);
      codebook::spell<2, 8>(codebook::iq1_levels[entry >> 11], codebook::iq1[entry & 2047], 0,
                            out.code + 8 * j);
    }
    detail::set_scales(out, to_float(scale(block)) * 0.125f,
                       [&block](std::size_t g) { return 2 * (block.scales[g / 4] >> (g % 4 * 3) & 7) + 1; });
  }

  // Specific to IQ1_M
  /// The number of the entry of values [8 j, 8 j + 8), and above its eleven bits 1 for a shift of -1.
  [[nodiscard]] static unsigned shifted_entry(const Block& block, std::size_t j) noexcept {
    return block.low[j] | ((unsigned{block.high[j / 2]} >> (j % 2 * 4)) & 15u) << 8;
  }
  /// d, whose bits lie apart.
  [[nodiscard]] static Half scale(const Block& block) noexcept {
    const std::uint16_t* const s = block.scales;
    return {static_cast<std::uint16_t>(s[0] >> 12 | s[1] >> 12 << 4 | s[2] >> 12 << 8 | s[3] >> 12 << 12)};
  }
  static void set_scale(Block& block, Half d) noexcept {
    for (int w = 0; w < 4; ++w) {
      const int low = block.scales[w] & 0x0FFF, high = (d.bits >> (4 * w)) << 12;
      block.scales[w] = static_cast<std::uint16_t>(low | high);
    }
  }
};

static_assert(sizeof(IQ1_S::Block) == 50 && IntegerFormat<IQ1_S>);
static_assert(sizeof(IQ1_M::Block) == 56 && IntegerFormat<IQ1_M>);

}  // namespace mica::format
