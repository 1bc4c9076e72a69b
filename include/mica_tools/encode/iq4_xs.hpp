// SPDX-License-Identifier: Apache-2.0
//
// IQ4_XS: a scale per group over the uneven levels, fitted with their common factor.
#pragma once

#include "mica/format/encode/encoder.hpp"
#include "mica/format/encode/pack.hpp"
#include "mica/format/iq4.hpp"
#include "mica_tools/encode/scaled_groups.hpp"

#include <cstddef>
#include <cstdint>

namespace mica::format {

template <>
struct Encoder<IQ4_XS> {
  static void encode(const float* values, const float* weights, IQ4_XS::Block& block) noexcept {
    const search::Values<256> all(values, weights);
    Codes<256, 32> parts;
    search::ScaledGroups<search::Codebook<IQ4_NL::levels>, 8, 32, -32, 31>(all).find(parts);
    block = {};
    block.d = to_half(parts.d);
    for (std::size_t g = 0; g < 8; ++g) {
      std::uint8_t codes[32];
      for (std::size_t i = 0; i < 32; ++i) {
        codes[i] = search::code_of_level<IQ4_NL::levels>[static_cast<std::uint8_t>(parts.code[32 * g + i])];
      }
      search::pack_nibbles(codes, 16, block.nibbles + 16 * g);
      const auto scale = static_cast<unsigned>(parts.scale[g] + 32);
      auto& low = block.scales_low[g / 2];
      low = static_cast<std::uint8_t>(low | (scale & 15) << (g % 2 * 4));
      block.scales_high = static_cast<std::uint16_t>(block.scales_high | scale >> 4 << (2 * g));
    }
  }
};

}  // namespace mica::format
