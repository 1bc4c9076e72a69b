// SPDX-License-Identifier: Apache-2.0
//
// IQ2_XXS: 256 values in eight groups of 32, each with a four-bit scale; eight values are one of 256 entries
// of a codebook with seven signs.
//
//   block of 66 bytes:  | d (f16) | 8 groups |       group:  | 4 bytes: entries | 32 bits |
//   value = d / 8 * (2 scale[g] + 1) * (magnitude with its sign)
//   the 32 bits, from the lowest: four times seven signs (the eighth makes their number even), then the scale
#pragma once

#include "mica/format/detail/codebook/entry.hpp"
#include "mica/format/detail/codebook/iq2.hpp"
#include "mica/format/detail/unpacked.hpp"

namespace mica::format {

struct IQ2_XXS {
  static constexpr Id id{16};
  static constexpr std::string_view name = "IQ2_XXS";
  static constexpr std::size_t block_size = 256;
  static constexpr Arithmetic arithmetic = Arithmetic::integer;
  static constexpr bool vector_codec = true;

  struct Group {
    std::uint8_t entries[4];
    std::uint16_t low, high;  // signs and scale

    [[nodiscard]] std::uint32_t bits() const noexcept { return low | std::uint32_t{high} << 16; }
  };
  struct Block {
    Half d;
    Group groups[8];
  };

  static void decode(const Block& block, float* values) noexcept {
    detail::decode_unpacked<IQ2_XXS>(block, values);
  }

  // Required by IntegerFormat
  static constexpr std::size_t group = 32;
  static constexpr bool has_mins = false;
  static constexpr int code_offset = 43;
  static constexpr int code_max = 86;
  static void unpack(const Block& block, Codes<256, 32>& out) noexcept;
};

inline void IQ2_XXS::unpack(const Block& block, Codes<256, 32>& out) noexcept {
  for (std::size_t g = 0; g < 8; ++g) {
    const Group& from = block.groups[g];
    const std::uint32_t bits = from.bits();
    for (std::size_t j = 0; j < 4; ++j) {
      codebook::spell<2, 8>(codebook::iq2_levels, codebook::iq2_xxs[from.entries[j]],
                            codebook::even_signs((bits >> (7 * j)) & 127), out.code + 32 * g + 8 * j);
    }
    out.scale[g] = static_cast<std::int16_t>(2 * (bits >> 28) + 1);
    out.min[g] = 0;
  }
  out.d = to_float(block.d) * 0.125f;
  out.dmin = 0;
}

static_assert(sizeof(IQ2_XXS::Block) == 66 && IntegerFormat<IQ2_XXS>);

}  // namespace mica::format
