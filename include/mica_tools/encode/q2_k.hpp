// SPDX-License-Identifier: Apache-2.0
//
// Q2_K: a scale and a min per group, fitted with their common factors.
#pragma once

#include "mica/format/encode/encoder.hpp"
#include "mica/format/encode/pack.hpp"
#include "mica/format/k.hpp"
#include "mica_tools/encode/lined_groups.hpp"

#include <cstddef>
#include <cstdint>

namespace mica::format {

template <>
struct Encoder<Q2_K> {
  static void encode(const float* values, const float* weights, Q2_K::Block& block) noexcept {
    search::Values<256> all(values, weights);
    Codes<256, 16> parts;
    search::LinedGroups<3, 16, 16, 15>(all).find(parts);
    block.d = to_half(parts.d);
    block.dmin = to_half(parts.dmin);
    for (std::size_t g = 0; g < 16; ++g) {
      block.scales[g] = static_cast<std::uint8_t>(parts.scale[g] | parts.min[g] << 4);
    }
    std::uint8_t codes[256];
    search::count_from_zero(parts, 0, 256, codes);
    search::pack_pairs(codes, 0, block.pairs);
  }
};

}  // namespace mica::format
