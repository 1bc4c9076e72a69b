// SPDX-License-Identifier: Apache-2.0
//
// Q5_K: a scale and a min per group, fitted with their common factors.
#pragma once

#include "mica/format/encode/encoder.hpp"
#include "mica/format/encode/pack.hpp"
#include "mica/format/k.hpp"
#include "mica_tools/encode/lined_groups.hpp"
#include "mica_tools/encode/q4_k.hpp"

#include <cstddef>
#include <cstdint>

namespace mica::format {

template <>
struct Encoder<Q5_K> {
  static void encode(const float* values, const float* weights, Q5_K::Block& block) noexcept {
    search::Values<256> all(values, weights);
    Codes<256, 32> parts;
    search::LinedGroups<31, 8, 32, 63>(all).find(parts);
    block.d = to_half(parts.d);
    block.dmin = to_half(parts.dmin);
    Encoder<Q4_K>::pack_scales(parts, block.scales);
    std::uint8_t codes[256];
    search::count_from_zero(parts, 0, 256, codes);
    for (std::size_t p = 0; p < 4; ++p) search::pack_nibbles(codes + 64 * p, 32, block.nibbles + 32 * p);
    for (std::size_t j = 0; j < 32; ++j) {
      unsigned byte = 0;
      for (std::size_t g = 0; g < 8; ++g) byte |= (codes[32 * g + j] >> 4 & 1u) << g;
      block.high[j] = static_cast<std::uint8_t>(byte);
    }
  }
};

}  // namespace mica::format
