// SPDX-License-Identifier: Apache-2.0
//
// The K formats: groups of a block have scales of their own, which are fitted with their common factor; those
// of Q2_K, Q4_K and Q5_K have mins too.
#pragma once

#include "mica/format/encode/encoder.hpp"
#include "mica/format/encode/pack.hpp"
#include "mica/format/k.hpp"
#include "mica_tools/encode/lined_groups.hpp"
#include "mica_tools/encode/pack_pairs.hpp"
#include "mica_tools/encode/scaled_groups.hpp"

#include <cstddef>
#include <cstdint>

namespace mica::format {

namespace search {

/// Fits a block of groups with mins, writes its d and dmin, and its codes to an array.
template <int High, std::size_t Group, int ScaleHigh, class Block>
Codes<256, Group> fit_lined(const float* values, const float* weights, Block& block,
                            std::uint8_t (&codes)[256]) noexcept {
  Values<256> all(values, weights);
  Codes<256, Group> parts;
  LinedGroups<High, 256 / Group, Group, ScaleHigh>(all).find(parts);
  block.d = to_half(parts.d);
  block.dmin = to_half(parts.dmin);
  count_from_zero(parts, 0, 256, codes);
  return parts;
}

/// The same for groups without mins; codes count from Low.
template <int Low, int High, int ScaleLow, int ScaleHigh, class Block>
Codes<256, 16> fit_scaled(const float* values, const float* weights, Block& block,
                          std::uint8_t (&codes)[256]) noexcept {
  const Values<256> all(values, weights);
  Codes<256, 16> parts;
  ScaledGroups<Integers<Low, High>, 16, 16, ScaleLow, ScaleHigh>(all).find(parts);
  block.d = to_half(parts.d);
  count_from_zero(parts, Low, 256, codes);
  return parts;
}

/// One bit of each of 256 codes: byte j holds those of codes j, j + 32, ..., j + 224.
inline void pack_bits(const std::uint8_t* codes, unsigned shift, std::uint8_t* bytes) noexcept {
  for (std::size_t j = 0; j < 32; ++j) {
    unsigned byte = 0;
    for (std::size_t k = 0; k < 8; ++k) byte |= (codes[32 * k + j] >> shift & 1u) << k;
    bytes[j] = static_cast<std::uint8_t>(byte);
  }
}

}  // namespace search

/// Encodes Q2_K.
template <>
struct Encoder<Q2_K> {
  /// Takes 256 values and as many weights, positive and finite (RowWeights).
  static void encode(const float* values, const float* weights, Q2_K::Block& block) noexcept {
    std::uint8_t codes[256];
    const auto parts = search::fit_lined<3, 16, 15>(values, weights, block, codes);
    for (std::size_t g = 0; g < 16; ++g) {
      block.scales[g] = static_cast<std::uint8_t>(parts.scale[g] | parts.min[g] << 4);
    }
    search::pack_pairs(codes, 0, block.pairs);
  }
};

/// Encodes Q3_K.
template <>
struct Encoder<Q3_K> {
  /// Takes 256 values and as many weights, positive and finite (RowWeights).
  static void encode(const float* values, const float* weights, Q3_K::Block& block) noexcept {
    std::uint8_t codes[256];
    pack_scales(search::fit_scaled<-4, 3, -32, 31>(values, weights, block, codes), block);
    search::pack_pairs(codes, 0, block.pairs);
    search::pack_bits(codes, 2, block.high);
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

/// Encodes Q4_K.
template <>
struct Encoder<Q4_K> {
  /// Takes 256 values and as many weights, positive and finite (RowWeights).
  static void encode(const float* values, const float* weights, Q4_K::Block& block) noexcept {
    std::uint8_t codes[256];
    pack_scales(search::fit_lined<15, 32, 63>(values, weights, block, codes), block.scales);
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

/// Encodes Q5_K.
template <>
struct Encoder<Q5_K> {
  /// Takes 256 values and as many weights, positive and finite (RowWeights).
  static void encode(const float* values, const float* weights, Q5_K::Block& block) noexcept {
    std::uint8_t codes[256];
    Encoder<Q4_K>::pack_scales(search::fit_lined<31, 32, 63>(values, weights, block, codes), block.scales);
    for (std::size_t p = 0; p < 4; ++p) search::pack_nibbles(codes + 64 * p, 32, block.nibbles + 32 * p);
    search::pack_bits(codes, 4, block.high);
  }
};

/// Encodes Q6_K.
template <>
struct Encoder<Q6_K> {
  /// Takes 256 values and as many weights, positive and finite (RowWeights).
  static void encode(const float* values, const float* weights, Q6_K::Block& block) noexcept {
    std::uint8_t codes[256];
    const auto parts = search::fit_scaled<-32, 31, -128, 127>(values, weights, block, codes);
    for (std::size_t g = 0; g < 16; ++g) block.scales[g] = static_cast<std::int8_t>(parts.scale[g]);
    for (std::size_t h = 0; h < 2; ++h) search::pack_nibbles(codes + 128 * h, 64, block.low + 64 * h);
    search::pack_pairs(codes, 4, block.high);
  }
};

}  // namespace mica::format
