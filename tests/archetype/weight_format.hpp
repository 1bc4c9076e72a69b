// SPDX-License-Identifier: Apache-2.0
//
// The minimal WeightFormat: it can be decoded and nothing else. It takes the number of F16 in files, and its
// blocks.

#pragma once

#include "mica/format/concept.hpp"
#include "mica/format/float.hpp"

namespace mica::archetype {

struct WeightFormat {
  // Required by WeightFormat
  static constexpr mica::format::Id id = mica::format::F16::id;
  static constexpr std::string_view name = "F16";
  static constexpr std::size_t block_size = 1;
  static constexpr mica::format::Arithmetic arithmetic = mica::format::Arithmetic::real;
  static constexpr bool vector_codec = false;

  struct Block {
    mica::Half value;
  };

  static void decode(const Block& block, float* values) noexcept { *values = mica::to_float(block.value); }
};
static_assert(mica::WeightFormat<WeightFormat>);

}  // namespace mica::archetype
