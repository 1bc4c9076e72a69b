// SPDX-License-Identifier: Apache-2.0
//
// The minimal WeightFormat: it can be decoded and nothing else. It takes the number of F16 in files, and its
// blocks.

#pragma once

#include "mica/format/concept.hpp"

namespace mica::archetype {

struct WeightFormat {
  // Required by WeightFormat
  static constexpr format::Id id = format::F16::id;
  static constexpr std::string_view name = "F16";
  static constexpr std::size_t block_size = 1;
  static constexpr format::Arithmetic arithmetic = format::Arithmetic::real;
  static constexpr bool vector_codec = false;

  struct Block {
    Half value;
  };

  static void decode(const Block& block, float* values) noexcept { *values = to_float(block.value); }
};
static_assert(mica::WeightFormat<WeightFormat>);

}  // namespace mica::archetype
