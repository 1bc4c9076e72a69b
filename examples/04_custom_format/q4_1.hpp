// SPDX-License-Identifier: Apache-2.0
//
// Q4_1 as if mica did not have it: 32 four-bit codes, a scale and an offset. In a list of formats it must stand before
// mica::format::All, since the first format with the number of a file's tensor is taken.
//
//   block of 20 bytes:  | d (f16) | m (f16) | 16 bytes |       value = d * code + m
//   byte j holds value j in its low nibble and value j + 16 in its high nibble
#pragma once

#include "mica/format/concept.hpp"

#include <algorithm>

namespace lesson {

/// All that a weight format needs: who it is, what a block is, how to decode it. Products are float products.
struct Q4_1 {
  static constexpr mica::format::Id id = mica::format::Id::Q4_1;
  static constexpr std::string_view name = "Q4_1";
  static constexpr std::size_t block_size = 32;
  static constexpr auto arithmetic = mica::format::Arithmetic::real;
  static constexpr bool vector_codec = false;

  struct Block {
    mica::Half d;
    mica::Half m;
    std::uint8_t nibbles[16];
  };

  static void decode(const Block& block, float* values) noexcept {
    const float d = mica::to_float(block.d), m = mica::to_float(block.m);
    for (std::size_t j = 0; j < 16; ++j) {
      values[j] = d * static_cast<float>(block.nibbles[j] & 15) + m;
      values[j + 16] = d * static_cast<float>(block.nibbles[j] >> 4) + m;
    }
  }

  /// Not part of the concept: the lesson makes its own file.
  static void encode(const float* values, Block& block) noexcept {
    const float least = *std::min_element(values, values + block_size);
    const float d = (*std::max_element(values, values + block_size) - least) / 15,
                inverse = d > 0 ? 1 / d : 0;
    const auto code = [&](std::size_t i) {
      return static_cast<std::uint8_t>(std::min(15.0f, (values[i] - least) * inverse + 0.5f));
    };
    block.d = mica::to_half(d);
    block.m = mica::to_half(least);
    for (std::size_t j = 0; j < 16; ++j)
      block.nibbles[j] = static_cast<std::uint8_t>(code(j) | (code(j + 16) << 4));
  }
};
static_assert(mica::WeightFormat<Q4_1>);

/// The same blocks with integer arithmetic: activations become eight-bit codes, and the vector kernels know
/// the block.
struct IntegerQ4_1 : Q4_1 {
  static constexpr auto arithmetic = mica::format::Arithmetic::integer;
  static constexpr bool vector_codec = true;  // in q4_1_codec-inl.hpp

  static constexpr std::size_t group = 32;
  static constexpr bool has_mins = true;
  static constexpr int code_offset = 0;
  static constexpr int code_max = 15;

  /// value = d * 1 * code - dmin * 1, so dmin is minus the offset.
  static void take_apart(const Block& block, mica::format::Codes<32, 32>& out) noexcept {
    for (std::size_t j = 0; j < 16; ++j) {
      out.code[j] = static_cast<std::int8_t>(block.nibbles[j] & 15);
      out.code[j + 16] = static_cast<std::int8_t>(block.nibbles[j] >> 4);
    }
    out.scale[0] = 1;
    out.min[0] = 1;
    out.d = mica::to_float(block.d);
    out.dmin = -mica::to_float(block.m);
  }
};
static_assert(mica::IntegerFormat<IntegerQ4_1>);

}  // namespace lesson
