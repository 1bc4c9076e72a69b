// SPDX-License-Identifier: Apache-2.0
//
// What integer formats share: values come out of the parts of a block by one formula (format/concept.hpp).
#pragma once

#include "mica/format/concept.hpp"

namespace mica::format::detail {

/// The values of a block; F::unpack must be declared.
template <class F>
void decode_unpacked(const typename F::Block& block, float* values) noexcept {
  Codes<F::block_size, F::group> parts;
  F::unpack(block, parts);
  for (std::size_t g = 0; g < F::block_size / F::group; ++g) {
    const float d = parts.d * static_cast<float>(parts.scale[g]);
    for (std::size_t i = g * F::group; i < (g + 1) * F::group; ++i) {
      values[i] = d * static_cast<float>(parts.code[i]);
      if constexpr (F::has_mins) values[i] -= parts.dmin * static_cast<float>(parts.min[g]);
    }
  }
}

/// One scale for the whole block and no mins, for formats that have no more than that.
template <std::size_t BlockSize>
void set_scale(Codes<BlockSize, 32>& parts, float d) noexcept {
  for (std::size_t g = 0; g < BlockSize / 32; ++g) {
    parts.scale[g] = 1;
    parts.min[g] = 0;
  }
  parts.d = d;
  parts.dmin = 0;
}

}  // namespace mica::format::detail
