// SPDX-License-Identifier: Apache-2.0
//
// Q6_K: a scale per group of either sign, fitted with their common factor.
#pragma once

#include "mica/format/encode/encoder.hpp"
#include "mica/format/encode/pack.hpp"
#include "mica/format/k.hpp"
#include "mica_tools/encode/scaled_groups.hpp"

#include <cstddef>
#include <cstdint>

namespace mica::format {

template <>
struct Encoder<Q6_K> {
  static void encode(const float* values, const float* weights, Q6_K::Block& block) noexcept {
    const search::Values<256> all(values, weights);
    Codes<256, 16> parts;
    search::ScaledGroups<search::Integers<-32, 31>, 16, 16, -128, 127>(all).find(parts);
    block.d = to_half(parts.d);
    for (std::size_t g = 0; g < 16; ++g) block.scales[g] = static_cast<std::int8_t>(parts.scale[g]);
    std::uint8_t codes[256];
    search::count_from_zero(parts, -32, 256, codes);
    for (std::size_t h = 0; h < 2; ++h) search::pack_nibbles(codes + 128 * h, 64, block.low + 64 * h);
    search::pack_pairs(codes, 4, block.high);
  }
};

}  // namespace mica::format
