// SPDX-License-Identifier: Apache-2.0
//
// IQ2_S: 256 values in sixteen groups of 16, each with a four-bit scale; eight values are one of 1024 entries
// of a codebook with eight signs.
//
//   block of 82 bytes:  | d (f16) | 32 bytes: low eight bits of entries | 32 bytes of signs |
//                       | 8 bytes: high two bits of entries | 8 bytes of scales |
//   value = d / 8 * (2 scale[g] + 1) * (magnitude with its sign)
//   the high bits of entry j are bits 2 (j % 4) and up of byte j / 4; scale g is nibble g % 2 of byte g / 2
#pragma once

#include "mica/format/detail/codebook/entry.hpp"
#include "mica/format/detail/codebook/iq2.hpp"
#include "mica/format/detail/unpacked.hpp"

namespace mica::format {

struct IQ2_S {
  static constexpr Id id{22};
  static constexpr std::string_view name = "IQ2_S";
  static constexpr std::size_t block_size = 256;
  static constexpr Arithmetic arithmetic = Arithmetic::integer;
  static constexpr bool vector_codec = true;

  struct Block {
    Half d;
    std::uint8_t low[32];
    std::uint8_t signs[32];
    std::uint8_t high[8];
    std::uint8_t scales[8];
  };

  static void decode(const Block& block, float* values) noexcept {
    detail::decode_unpacked<IQ2_S>(block, values);
  }

  // Required by IntegerFormat
  static constexpr std::size_t group = 16;
  static constexpr bool has_mins = false;
  static constexpr int code_offset = 43;
  static constexpr int code_max = 86;
  static void unpack(const Block& block, Codes<256, 16>& out) noexcept;

  // Specific to IQ2_S
  /// The number of the entry of values [8 j, 8 j + 8).
  [[nodiscard]] static unsigned entry(const Block& block, std::size_t j) noexcept {
    return block.low[j] | ((block.high[j / 4] >> (j % 4 * 2)) & 3u) << 8;
  }
};

inline void IQ2_S::unpack(const Block& block, Codes<256, 16>& out) noexcept {
  for (std::size_t j = 0; j < 32; ++j) {
    codebook::spell<2, 8>(codebook::iq2_levels, codebook::iq2_s[entry(block, j)], block.signs[j],
                          out.code + 8 * j);
  }
  for (std::size_t g = 0; g < 16; ++g) {
    const int scale = (block.scales[g / 2] >> (g % 2 * 4)) & 15;
    out.scale[g] = static_cast<std::int16_t>(2 * scale + 1);
    out.min[g] = 0;
  }
  out.d = to_float(block.d) * 0.125f;
  out.dmin = 0;
}

static_assert(sizeof(IQ2_S::Block) == 82 && IntegerFormat<IQ2_S>);

}  // namespace mica::format
