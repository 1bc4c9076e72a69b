// SPDX-License-Identifier: Apache-2.0
//
// IQ3_XXS: 256 values in eight groups of 32, each with a four-bit scale; four values are one of 256 entries
// of a codebook, eight values have seven signs.
//
//   block of 98 bytes:  | d (f16) | 64 bytes: entries | 8 x 32 bits |
//   value = d / 4 * (2 scale[g] + 1) * (magnitude with its sign)
//   the 32 bits, from the lowest: four times seven signs (the eighth makes their number even), then the scale
#pragma once

#include "mica/format/detail/codebook/entry.hpp"
#include "mica/format/detail/codebook/iq3.hpp"
#include "mica/format/detail/unpacked.hpp"

namespace mica::format {

struct IQ3_XXS {
  static constexpr Id id{18};
  static constexpr std::string_view name = "IQ3_XXS";
  static constexpr std::size_t block_size = 256;
  static constexpr Arithmetic arithmetic = Arithmetic::integer;
  static constexpr bool vector_codec = true;

  struct Block {
    Half d;
    std::uint8_t entries[64];
    std::uint16_t halves[16];  // signs and scales
  };

  static void decode(const Block& block, float* values) noexcept {
    detail::decode_unpacked<IQ3_XXS>(block, values);
  }

  // Required by IntegerFormat
  static constexpr std::size_t group = 32;
  static constexpr bool has_mins = false;
  static constexpr int code_offset = 62;
  static constexpr int code_max = 124;
  static void unpack(const Block& block, Codes<256, 32>& out) noexcept;

  // Specific to IQ3_XXS
  /// Signs and scale of group g.
  [[nodiscard]] static std::uint32_t bits(const Block& block, std::size_t g) noexcept {
    return block.halves[2 * g] | std::uint32_t{block.halves[2 * g + 1]} << 16;
  }
};

inline void IQ3_XXS::unpack(const Block& block, Codes<256, 32>& out) noexcept {
  for (std::size_t j = 0; j < 64; ++j) {
    const unsigned signs = codebook::even_signs((bits(block, j / 8) >> (j / 2 % 4 * 7)) & 127);
    codebook::spell<3, 4>(codebook::iq3_xxs_levels, codebook::iq3_xxs[block.entries[j]], signs >> (j % 2 * 4),
                          out.code + 4 * j);
  }
  for (std::size_t g = 0; g < 8; ++g) {
    out.scale[g] = static_cast<std::int16_t>(2 * (bits(block, g) >> 28) + 1);
    out.min[g] = 0;
  }
  out.d = to_float(block.d) * 0.25f;
  out.dmin = 0;
}

static_assert(sizeof(IQ3_XXS::Block) == 98 && IntegerFormat<IQ3_XXS>);

}  // namespace mica::format
