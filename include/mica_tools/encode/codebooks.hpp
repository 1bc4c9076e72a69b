// SPDX-License-Identifier: Apache-2.0
//
// NF4, MXFP4 and IQ4_XS: codes are places in a list of uneven levels.
#pragma once

#include "mica/format/encode/encoder.hpp"
#include "mica/format/encode/pack.hpp"
#include "mica/format/encode/scale.hpp"
#include "mica/format/encode/scaled_block.hpp"
#include "mica/format/encode/values.hpp"
#include "mica/format/fp4.hpp"
#include "mica/format/iq4.hpp"
#include "mica/format/nf4.hpp"
#include "mica_tools/encode/scaled_groups.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace mica::format {

/// The scale with the least weighted error, of either sign, because the levels are denser below zero.
template <>
struct Encoder<NF4> {
  /// Takes 32 values and as many weights, positive and finite (RowWeights).
  static void encode(const float* values, const float* weights, NF4::Block& block) noexcept {
    const search::Values<32> all(values, weights);
    block.d = search::find_half<search::Codebook<NF4::levels>>(all);
    const float inverse = search::inverse_or_zero(all.loaded(block.d));
    std::uint8_t codes[32];
    for (std::size_t i = 0; i < 32; ++i) codes[i] = NF4::nearest(all.x[i] * inverse);
    search::pack_nibbles(codes, 16, block.nibbles);
  }
};

/// Of the powers of two around the largest value, the one with the least weighted error.
template <>
struct Encoder<MXFP4> {
  /// Takes 32 values and as many weights, positive and finite (RowWeights).
  static void encode(const float* values, const float* weights, MXFP4::Block& block) noexcept {
    const search::Values<32> all(values, weights);
    block.exponent = choose_exponent(all);
    const float inverse = all.unit / MXFP4::half_scale(block.exponent);
    std::uint8_t codes[32];
    for (std::size_t i = 0; i < 32; ++i) {
      const auto level = static_cast<std::int8_t>(Levels::nearest(all.x[i] * inverse));
      codes[i] = search::code_of_level<detail::doubled_fp4>[static_cast<std::uint8_t>(level)];
    }
    search::pack_nibbles(codes, 16, block.nibbles);
  }

 private:
  static constexpr std::int8_t ascending[15] = {-12, -8, -6, -4, -3, -2, -1, 0, 1, 2, 3, 4, 6, 8, 12};
  using Levels = search::Codebook<ascending>;

  /// The largest value is 1 to 2 units and the largest level 12, so half the scale is about 2^-4 to 2^-2
  /// units.
  static std::uint8_t choose_exponent(const search::Values<32>& all) noexcept {
    constexpr std::size_t count = 4;
    std::uint8_t exponent[count];
    float scale[count], inverse[count], error[count] = {};
    for (std::size_t k = 0; k < count; ++k) {
      const int wanted = std::ilogb(all.unit) + 128 - 5 + static_cast<int>(k);
      exponent[k] = static_cast<std::uint8_t>(std::clamp(wanted, 0, 254));
      scale[k] = MXFP4::half_scale(exponent[k]) / all.unit;
      inverse[k] = 1 / scale[k];
    }
    for (std::size_t i = 0; i < 32; ++i) {
      float q[count];
      for (std::size_t k = 0; k < count; ++k) q[k] = all.x[i] * inverse[k];
      Levels::settle(q);
      for (std::size_t k = 0; k < count; ++k) {
        const float miss = all.x[i] - scale[k] * q[k];
        error[k] += all.w[i] * miss * miss;
      }
    }
    return exponent[std::min_element(error, error + count) - error];
  }
};

/// A scale per group, fitted with their common factor.
template <>
struct Encoder<IQ4_XS> {
  /// Takes 256 values and as many weights, positive and finite (RowWeights).
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
