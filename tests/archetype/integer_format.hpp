// SPDX-License-Identifier: Apache-2.0
//
// The minimal IntegerFormat: eight-bit codes and one scale. It takes the number of Q8_0 in files, and its
// blocks.

#pragma once

#include "mica/format/concept.hpp"
#include "mica/format/q8_0.hpp"

#include <algorithm>

namespace mica::archetype {

struct IntegerFormat {
  // Required by WeightFormat
  static constexpr mica::format::Id id = mica::format::Q8_0::id;
  static constexpr std::string_view name = "Q8_0";
  static constexpr std::size_t block_size = 32;
  static constexpr mica::format::Arithmetic arithmetic = mica::format::Arithmetic::integer;
  static constexpr bool vector_codec = false;

  struct Block {
    mica::Half d;
    std::int8_t code[32];
  };

  static void decode(const Block& block, float* values) noexcept {
    for (std::size_t i = 0; i < 32; ++i)
      values[i] = mica::to_float(block.d) * static_cast<float>(block.code[i]);
  }

  // Required by IntegerFormat
  static constexpr std::size_t group = 32;
  static constexpr bool has_mins = false;
  static constexpr int code_offset = 128;
  static constexpr int code_max = 255;

  static void unpack(const Block& block, mica::format::Codes<32, 32>& out) noexcept {
    std::copy_n(block.code, 32, out.code);
    out.scale[0] = 1;
    out.min[0] = 0;
    out.d = mica::to_float(block.d);
    out.dmin = 0;
  }
};
static_assert(mica::IntegerFormat<IntegerFormat>);

}  // namespace mica::archetype
