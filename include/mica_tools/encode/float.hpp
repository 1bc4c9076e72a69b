// SPDX-License-Identifier: Apache-2.0
//
// F16 and BF16 rounded to nearest, and never to infinity: what is too large becomes the largest number.
#pragma once

#include "mica/format/encode/encoder.hpp"
#include "mica/format/encode/values.hpp"
#include "mica/format/float.hpp"

#include <cmath>

namespace mica::format {

template <>
struct Encoder<F16> {
  static void encode(const float* values, const float*, Half& block) noexcept {
    block = search::finite_half(*values);
  }
};

template <>
struct Encoder<BF16> {
  static void encode(const float* values, const float*, Bfloat& block) noexcept {
    block = to_bfloat(*values);
    if ((block.bits & 0x7FFFu) == 0x7F80u && std::isfinite(*values)) --block.bits;
  }
};

}  // namespace mica::format
