// SPDX-License-Identifier: Apache-2.0
//
// A format read as floats: the blocks of F, multiplied without rounding the activations. For the few small
// matrices whose errors weigh more than their speed.
#pragma once

#include "mica/format/concept.hpp"

namespace mica::format {

/// F with real arithmetic.
template <WeightFormat F>
struct Decoded : F {
  static constexpr Arithmetic arithmetic = Arithmetic::real;
  static constexpr bool vector_codec = false;
};

}  // namespace mica::format
