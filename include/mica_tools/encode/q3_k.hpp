// SPDX-License-Identifier: Apache-2.0
//
// Q3_K: a scale per group of either sign, fitted with their common factor.
#pragma once

#include "mica/format/encode/encoder.hpp"
#include "mica/format/encode/pack.hpp"
#include "mica/format/k.hpp"
#include "mica_tools/encode/scaled_groups.hpp"

#include <cstddef>
#include <cstdint>

namespace mica::format {

template <>
struct Encoder<Q3_K> {
  static void encode(const float* values, const float* weights, Q3_K::Block& block) noexcept {
    const search::Values<256> all(values, weights);
    Codes<256, 16> parts;
    search::ScaledGroups<search::Integers<-4, 3>, 16, 16, -32, 31>(all).find(parts);
    block.d = to_half(parts.d);
    pack_scales(parts, block);
    std::uint8_t codes[256];
    search::count_from_zero(parts, -4, 256, codes);
    search::pack_pairs(codes, 0, block.pairs);
    for (std::size_t j = 0; j < 32; ++j) {
      unsigned byte = 0;
      for (std::size_t k = 0; k < 8; ++k) byte |= (codes[32 * k + j] >> 2 & 1u) << k;
      block.high[j] = static_cast<std::uint8_t>(byte);
    }
  }

 private:
  static void pack_scales(const Codes<256, 16>& parts, Q3_K::Block& block) noexcept {
    unsigned scale[16];
    for (std::size_t g = 0; g < 16; ++g) scale[g] = static_cast<unsigned>(parts.scale[g] + 32);
    for (std::size_t g = 0; g < 8; ++g) {
      block.scales[g] = static_cast<std::uint8_t>((scale[g] & 15) | (scale[g + 8] & 15) << 4);
    }
    for (std::size_t g = 0; g < 4; ++g) {
      block.scales[8 + g] = static_cast<std::uint8_t>(scale[g] >> 4 | scale[g + 4] >> 4 << 2 |
                                                      scale[g + 8] >> 4 << 4 | scale[g + 12] >> 4 << 6);
    }
  }
};

}  // namespace mica::format
