// SPDX-License-Identifier: Apache-2.0
//
// IQ1_S: 256 values in eight groups of 32, each with a three-bit scale and a shift of one eighth up or down;
// eight values are one of 2048 entries of a codebook of -1, 0 and 1.
//
//   block of 50 bytes:  | d (f16) | 32 bytes: low eight bits of entries | 8 x 16 bits |
//   value = d * (2 scale[g] + 1) * (number + shift[g] / 8) = d / 8 * (2 scale[g] + 1) * (8 number + shift[g])
//   the 16 bits, from the lowest: four times the high three bits of an entry, scale, and 1 for a shift of -1
#pragma once

#include "mica/format/detail/codebook/entry.hpp"
#include "mica/format/detail/codebook/iq1.hpp"
#include "mica/format/detail/unpacked.hpp"

namespace mica::format {

struct IQ1_S {
  static constexpr Id id{19};
  static constexpr std::string_view name = "IQ1_S";
  static constexpr std::size_t block_size = 256;
  static constexpr Arithmetic arithmetic = Arithmetic::integer;
  static constexpr bool vector_codec = true;

  struct Block {
    Half d;
    std::uint8_t low[32];
    std::uint16_t high[8];
  };

  static void decode(const Block& block, float* values) noexcept {
    detail::decode_unpacked<IQ1_S>(block, values);
  }

  // Required by IntegerFormat
  static constexpr std::size_t group = 32;
  static constexpr bool has_mins = false;
  static constexpr int code_offset = 9;
  static constexpr int code_max = 18;
  static void unpack(const Block& block, Codes<256, 32>& out) noexcept;

  // Specific to IQ1_S
  /// The number of the entry of values [8 j, 8 j + 8).
  [[nodiscard]] static unsigned entry(const Block& block, std::size_t j) noexcept {
    return block.low[j] | ((unsigned{block.high[j / 4]} >> (j % 4 * 3)) & 7u) << 8;
  }
};

inline void IQ1_S::unpack(const Block& block, Codes<256, 32>& out) noexcept {
  for (std::size_t j = 0; j < 32; ++j) {
    codebook::spell<2, 8>(codebook::iq1_levels[block.high[j / 4] >> 15], codebook::iq1[entry(block, j)], 0,
                          out.code + 8 * j);
  }
  for (std::size_t g = 0; g < 8; ++g) {
    out.scale[g] = static_cast<std::int16_t>(2 * ((block.high[g] >> 12) & 7) + 1);
    out.min[g] = 0;
  }
  out.d = to_float(block.d) * 0.125f;
  out.dmin = 0;
}

static_assert(sizeof(IQ1_S::Block) == 50 && IntegerFormat<IQ1_S>);

}  // namespace mica::format
