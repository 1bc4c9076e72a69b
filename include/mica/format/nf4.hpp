// SPDX-License-Identifier: Apache-2.0
//
// NF4: 32 four-bit codes that stand for the sixteen levels of a "normal float", and one half-precision scale.
// The levels are those of QLoRA (arXiv 2305.14314): quantiles of a normal distribution, 0 and both ends
// exact.
//
//   block of 18 bytes:  | d (f16) | 16 bytes |       value = d * levels[code], d = the largest magnitude
//   byte j holds value j in its low nibble and value j + 16 in its high nibble
//
// A format of mica's own: other programs refuse its number.
#pragma once

#include "mica/format/concept.hpp"

#include <algorithm>
#include <cmath>

namespace mica::format {

struct NF4 {
  // Required by EncodableFormat
  static constexpr Id id{0x344E4D};  // bytes "MN4"
  static constexpr std::string_view name = "NF4";
  static constexpr std::size_t block_size = 32;
  static constexpr Arithmetic arithmetic = Arithmetic::real;
  static constexpr bool vector_codec = true;

  struct Block {
    Half d;
    std::uint8_t nibbles[16];
  };

  static void decode(const Block& block, float* values) noexcept {
    const float d = to_float(block.d);
    for (std::size_t j = 0; j < 16; ++j) {
      values[j] = d * levels[block.nibbles[j] & 15];
      values[j + 16] = d * levels[block.nibbles[j] >> 4];
    }
  }
  /// Codes are chosen for the scale as it is stored.
  static void encode(const float* values, Block& block) noexcept {
    float amax = 0;
    for (std::size_t i = 0; i < block_size; ++i) amax = std::max(amax, std::fabs(values[i]));
    block.d = to_half(amax);
    const float d = to_float(block.d);
    const float inverse = d > 0 ? 1.0f / d : 0.0f;
    for (std::size_t j = 0; j < 16; ++j) {
      const int low = nearest(values[j] * inverse), high = nearest(values[j + 16] * inverse);
      block.nibbles[j] = static_cast<std::uint8_t>(low | (high << 4));
    }
  }

  // Specific to NF4
  /// In ascending order.
  // clang-format off
  static constexpr float levels[16] = {
      -1.0f, -0.6961928009986877f, -0.5250730514526367f, -0.39491748809814453f,
      -0.28444138169288635f, -0.18477343022823334f, -0.09105003625154495f, 0.0f,
      0.07958029955625534f, 0.16093020141124725f, 0.24611230194568634f, 0.33791524171829224f,
      0.44070982933044434f, 0.5626170039176941f, 0.7229568362236023f, 1.0f};
  // clang-format on
  /// The code of the level nearest to x; the lower one of two.
  static std::uint8_t nearest(float x) noexcept {
    const float* const above = std::lower_bound(levels, levels + 15, x);
    const auto code = static_cast<std::uint8_t>(above - levels);
    return code > 0 && x - levels[code - 1] <= levels[code] - x ? static_cast<std::uint8_t>(code - 1) : code;
  }
};

static_assert(sizeof(NF4::Block) == 18 && EncodableFormat<NF4>);

}  // namespace mica::format
