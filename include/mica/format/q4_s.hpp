// SPDX-License-Identifier: Apache-2.0
//
// Q4_S: four-bit codes whose levels are shifted by half a step in groups of four, for keys and values. It is
// no format of files: the bytes of Q4_0 buy 17 bits for four numbers, because the scale takes eight bits
// instead of sixteen.
//
//   block of 18 bytes:  | scale (8 bits) | shifts (8 bits) | 16 bytes |       value = scale * level[2 * code + shift]
//   byte j holds value j in its low nibble and value j + 16 in its high nibble;
//   bit g of the shifts belongs to values 4 g to 4 g + 3
//
// Levels are odd numbers up to 21 and then 24, 28, 32, 36 and 40, of either sign: wider apart where few
// numbers are. Even places of them and odd ones are two grids that lie between each other, and four numbers
// take the one that is nearer to all of them. With even steps these are the points of the densest lattice in
// four dimensions (J. H. Conway and N. J. A. Sloane, Sphere Packings, Lattices and Groups). A scale of s is
// 2^(s / 8 - 20) (1 + s % 8 / 8), 0 for s = 0, no number for s = 255.
#pragma once

#include "mica/format/detail/unpacked.hpp"

#include <bit>
#include <limits>

namespace mica::format {

struct Q4_S : detail::IntegerBlocks<Q4_S, 32, 32> {
  static constexpr std::string_view name = "Q4_S";
  // Required by IntegerFormat
  static constexpr int code_offset = 40;
  static constexpr int code_max = 80;

  struct Block {
    Half d;  // the scale in its low byte, the shifts in its high one
    std::uint8_t nibbles[16];
  };

  static void unpack(const Block& block, Codes<32, 32>& out) noexcept {
    for (std::size_t i = 0; i < block_size; ++i) {
      const int code = detail::nibble(block.nibbles, i);
      out.code[i] = levels[2 * code + (block.d.bits >> (8 + i / 4) & 1)];
    }
    detail::set_scale(out, scale_of(static_cast<std::uint8_t>(block.d.bits & 255)));
  }

  // Specific to Q4_S
  /// Ascending: the even places are one grid, the odd ones the other.
  static constexpr std::int8_t levels[32] = {-40, -36, -32, -28, -24, -21, -19, -17, -15, -13, -11,
                                             -9,  -7,  -5,  -3,  -1,  1,   3,   5,   7,   9,   11,
                                             13,  15,  17,  19,  21,  24,  28,  32,  36,  40};
  static constexpr std::uint8_t no_number = 255;  // the scale of a block with numbers that F16 cannot hold
  /// Added to a scale's eight bits before they become those of a float from bit 20 on.
  static constexpr std::uint32_t scale_bias = (127 - 20) * 8;

  /// The scale of its eight bits; NaN for no_number.
  [[nodiscard]] static constexpr float scale_of(std::uint8_t bits) noexcept {
    if (bits == no_number) return std::numeric_limits<float>::quiet_NaN();
    return bits == 0 ? 0.0f : std::bit_cast<float>((bits + scale_bias) << 20);
  }
  /// The nearest scale, at most the largest.
  [[nodiscard]] static constexpr std::uint8_t nearest_scale(float scale) noexcept {
    constexpr std::uint32_t min_value = scale_bias + 1, max = scale_bias + no_number - 1;
    const std::uint32_t bits = (std::bit_cast<std::uint32_t>(scale) + (1U << 19)) >> 20;
    if (!(scale > 0) || bits < min_value) return 0;
    return static_cast<std::uint8_t>((bits < max ? bits : max) - scale_bias);
  }
  /// Both bytes as the field of a block.
  [[nodiscard]] static constexpr Half d(std::uint8_t scale, std::uint8_t shifts) noexcept {
    return Half{static_cast<std::uint16_t>(scale | shifts << 8)};
  }
};

static_assert(sizeof(Q4_S::Block) == 18);
static_assert(Q4_S::scale_of(160) == 1.0f && Q4_S::nearest_scale(1.05f) == 160 &&
              Q4_S::nearest_scale(1e9f) == 254);

}  // namespace mica::format
