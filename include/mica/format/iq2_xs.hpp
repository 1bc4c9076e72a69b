// SPDX-License-Identifier: Apache-2.0
//
// IQ2_XS: 256 values in sixteen groups of 16, each with a four-bit scale; eight values are one of 512 entries
// of a codebook with seven signs.
//
//   block of 74 bytes:  | d (f16) | 32 x 16 bits | 8 bytes of scales |
//   value = d / 8 * (2 scale[g] + 1) * (magnitude with its sign)
//   16 bits, from the lowest: nine of the entry, seven signs (the eighth makes their number even)
//   scale g is nibble g % 2 of byte g / 2
#pragma once

#include "mica/format/detail/codebook/entry.hpp"
#include "mica/format/detail/codebook/iq2.hpp"
#include "mica/format/detail/unpacked.hpp"

namespace mica::format {

struct IQ2_XS {
  static constexpr Id id{17};
  static constexpr std::string_view name = "IQ2_XS";
  static constexpr std::size_t block_size = 256;
  static constexpr Arithmetic arithmetic = Arithmetic::integer;
  static constexpr bool vector_codec = true;

  struct Block {
    Half d;
    std::uint16_t words[32];
    std::uint8_t scales[8];
  };

  static void decode(const Block& block, float* values) noexcept {
    detail::decode_unpacked<IQ2_XS>(block, values);
  }

  // Required by IntegerFormat
  static constexpr std::size_t group = 16;
  static constexpr bool has_mins = false;
  static constexpr int code_offset = 43;
  static constexpr int code_max = 86;
  static void unpack(const Block& block, Codes<256, 16>& out) noexcept;
};

inline void IQ2_XS::unpack(const Block& block, Codes<256, 16>& out) noexcept {
  for (std::size_t j = 0; j < 32; ++j) {
    const unsigned word = block.words[j];
    codebook::spell<2, 8>(codebook::iq2_levels, codebook::iq2_xs[word & 511], codebook::even_signs(word >> 9),
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

static_assert(sizeof(IQ2_XS::Block) == 74 && IntegerFormat<IQ2_XS>);

}  // namespace mica::format
