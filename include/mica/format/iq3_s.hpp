// SPDX-License-Identifier: Apache-2.0
//
// IQ3_S: 256 values in eight groups of 32, each with a four-bit scale; four values are one of 512 entries of
// a codebook, each value has its sign.
//
//   block of 110 bytes:  | d (f16) | 64 bytes: low eight bits of entries | 8 bytes: ninth bits | 32 bytes of signs |
//                        | 4 bytes of scales |
//   value = d * (2 scale[g] + 1) * (magnitude with its sign)
//   the ninth bit of entry j is bit j % 8 of byte j / 8; scale g is nibble g % 2 of byte g / 2
#pragma once

#include "mica/format/detail/codebook/entry.hpp"
#include "mica/format/detail/codebook/iq3.hpp"
#include "mica/format/detail/unpacked.hpp"

namespace mica::format {

struct IQ3_S {
  static constexpr Id id{21};
  static constexpr std::string_view name = "IQ3_S";
  static constexpr std::size_t block_size = 256;
  static constexpr Arithmetic arithmetic = Arithmetic::integer;
  static constexpr bool vector_codec = true;

  struct Block {
    Half d;
    std::uint8_t low[64];
    std::uint8_t high[8];
    std::uint8_t signs[32];
    std::uint8_t scales[4];
  };

  static void decode(const Block& block, float* values) noexcept {
    detail::decode_unpacked<IQ3_S>(block, values);
  }

  // Required by IntegerFormat
  static constexpr std::size_t group = 32;
  static constexpr bool has_mins = false;
  static constexpr int code_offset = 15;
  static constexpr int code_max = 30;
  static void unpack(const Block& block, Codes<256, 32>& out) noexcept;

  // Specific to IQ3_S
  /// The number of the entry of values [4 j, 4 j + 4).
  [[nodiscard]] static unsigned entry(const Block& block, std::size_t j) noexcept {
    return block.low[j] | ((block.high[j / 8] >> (j % 8)) & 1u) << 8;
  }
};

inline void IQ3_S::unpack(const Block& block, Codes<256, 32>& out) noexcept {
  for (std::size_t j = 0; j < 64; ++j) {
    codebook::spell<3, 4>(codebook::iq3_s_levels, codebook::iq3_s[entry(block, j)],
                          unsigned{block.signs[j / 2]} >> (j % 2 * 4), out.code + 4 * j);
  }
  for (std::size_t g = 0; g < 8; ++g) {
    const int scale = (block.scales[g / 2] >> (g % 2 * 4)) & 15;
    out.scale[g] = static_cast<std::int16_t>(2 * scale + 1);
    out.min[g] = 0;
  }
  out.d = to_float(block.d);
  out.dmin = 0;
}

static_assert(sizeof(IQ3_S::Block) == 110 && IntegerFormat<IQ3_S>);

}  // namespace mica::format
