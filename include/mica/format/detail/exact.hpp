// SPDX-License-Identifier: Apache-2.0
//
// Decoding by taking apart, for integer formats without mins in which d, scale and code have at most 24 bits together:
// every product is exact in a float, so the order in which the file format's own decoder multiplies cannot be seen.
#pragma once

#include "mica/format/concept.hpp"

namespace mica::format::detail {

/// block_size floats. F::take_apart must be declared.
template <class F>
void decode_exact(const typename F::Block& block, float* values) noexcept {
  static_assert(!F::has_mins);
  Codes<F::block_size, F::group> codes;
  F::take_apart(block, codes);
  for (std::size_t g = 0; g < F::block_size / F::group; ++g) {
    const float d = codes.d * static_cast<float>(codes.scale[g]);
    for (std::size_t i = g * F::group; i < (g + 1) * F::group; ++i) {
      values[i] = d * static_cast<float>(codes.code[i]);
    }
  }
}

}  // namespace mica::format::detail
