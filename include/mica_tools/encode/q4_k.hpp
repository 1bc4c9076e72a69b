// SPDX-License-Identifier: Apache-2.0
//
// Q4_K: a scale and a min per group, fitted with their common factors.
#pragma once

#include "mica/format/encode/encoder.hpp"
#include "mica/format/encode/pack.hpp"
#include "mica/format/k.hpp"
#include "mica_tools/encode/lined_groups.hpp"

#include <cstddef>
#include <cstdint>

namespace mica::format {

template <>
struct Encoder<Q4_K> {
  static void encode(const float* values, const float* weights, Q4_K::Block& block) noexcept {
    search::Values<256> all(values, weights);
    Codes<256, 32> parts;
    search::LinedGroups<15, 8, 32, 63>(all).find(parts);
    block.d = to_half(parts.d);
    block.dmin = to_half(parts.dmin);
    pack_scales(parts, block.scales);
    std::uint8_t codes[256];
    search::count_from_zero(parts, 0, 256, codes);
    for (std::size_t p = 0; p < 4; ++p) search::pack_nibbles(codes + 64 * p, 32, block.nibbles + 32 * p);
  }

  /// Eight scales and mins in twelve bytes, here and in Q5_K.
  static void pack_scales(const Codes<256, 32>& parts, std::uint8_t* bytes) noexcept {
    for (std::size_t g = 0; g < 4; ++g) {
      const auto scale = static_cast<unsigned>(parts.scale[g + 4]);
      const auto min = static_cast<unsigned>(parts.min[g + 4]);
      bytes[g] = static_cast<std::uint8_t>(static_cast<unsigned>(parts.scale[g]) | scale >> 4 << 6);
      bytes[g + 4] = static_cast<std::uint8_t>(static_cast<unsigned>(parts.min[g]) | min >> 4 << 6);
      bytes[g + 8] = static_cast<std::uint8_t>((scale & 15) | (min & 15) << 4);
    }
  }
};

}  // namespace mica::format
