// SPDX-License-Identifier: Apache-2.0
//
// A format read as floats: the blocks of F, multiplied without rounding the activations. For the few small
// matrices whose errors weigh more than their speed.
#pragma once

#include "mica/format/concept.hpp"

namespace mica::format {

/// F with real arithmetic.
template <WeightFormat F>
struct Decoded {
  static constexpr Id id = F::id;
  static constexpr std::string_view name = F::name;
  static constexpr std::size_t block_size = F::block_size;
  static constexpr Arithmetic arithmetic = Arithmetic::real;
  static constexpr bool vector_codec = false;
  using Block = typename F::Block;
  static void decode(const Block& block, float* values) noexcept { F::decode(block, values); }
};

}  // namespace mica::format
