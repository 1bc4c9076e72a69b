// SPDX-License-Identifier: Apache-2.0
//
// Q4_0, Q4_1, Q5_0, Q5_1, Q6_0 and IQ4_NL: the scale, or the scale and offset, with the least weighted error.
// A scale may have either sign, because codes reach further below zero than above.
#pragma once

#include "mica/format/encode/encoder.hpp"
#include "mica/format/encode/line.hpp"
#include "mica/format/encode/pack.hpp"
#include "mica/format/encode/scaled_block.hpp"
#include "mica/format/iq4.hpp"
#include "mica/format/legacy.hpp"

#include <cstdint>

namespace mica::format {

namespace search {

/// 32 codes as nibbles, and as high bits in a block that has them.
template <class Block>
void pack_codes(const std::uint8_t* codes, Block& block) noexcept {
  pack_nibbles(codes, 16, block.nibbles);
  if constexpr (requires { block.high; }) {
    sizeof(block.high) == 4 ? pack_fifth_bits(codes, block.high) : pack_high_pairs(codes, block.high);
  }
}

/// value = d * level, levels from Low to High, which codes count from 0.
template <class F, int Low, int High>
struct ScaledEncoder {
  using Levels = Integers<Low, High>;

  /// As Encoder; quick searches less, for keys and values.
  template <Effort effort = Effort::thorough>
  static void encode(const float* values, const float* weights, typename F::Block& block) noexcept {
    const Values<32> all(values, weights);
    std::uint8_t codes[32];
    block.d = find_half<Levels, effort>(all);
    take_nearest<Levels>(all, block.d, Low, codes);
    pack_codes(codes, block);
  }
};

/// value = d * code + m, codes from 0 to High. The search runs on deviations from the mean, so that an offset
/// far larger than the spread costs no digits; once m is rounded, what is left is to choose d.
template <class F, int High>
struct LinedEncoder {
  using Levels = Integers<0, High>;

  /// As Encoder; quick searches less, for keys and values.
  template <Effort effort = Effort::thorough>
  static void encode(const float* values, const float* weights, typename F::Block& block) noexcept {
    Values<32> all(values, weights);
    float mean = 0;
    for (const float x : all.x) mean += x / 32.0f;
    for (float& x : all.x) x -= mean;
    const Line line = find_line<High, Offset::any, effort>(all.x, all.w, 32);
    block.m = finite_half((line.offset + mean) * all.unit);
    const float shift = mean - all.loaded(block.m);
    for (float& x : all.x) x += shift;
    block.d = effort == Effort::quick ? all.stored(line.scale) : choose_half<Levels>(all, line.scale);
    std::uint8_t codes[32];
    take_nearest<Levels>(all, block.d, 0, codes);
    pack_codes(codes, block);
  }
};

}  // namespace search

/// Encodes Q4_0.
template <>
struct Encoder<Q4_0> : search::ScaledEncoder<Q4_0, -8, 7> {};

/// Encodes Q5_0.
template <>
struct Encoder<Q5_0> : search::ScaledEncoder<Q5_0, -16, 15> {};

/// Encodes Q6_0.
template <>
struct Encoder<Q6_0> : search::ScaledEncoder<Q6_0, -32, 31> {};

/// Encodes Q4_1.
template <>
struct Encoder<Q4_1> : search::LinedEncoder<Q4_1, 15> {};

/// Encodes Q5_1.
template <>
struct Encoder<Q5_1> : search::LinedEncoder<Q5_1, 31> {};

/// Encodes IQ4_NL.
template <>
struct Encoder<IQ4_NL> {
  /// As ScaledEncoder.
  template <search::Effort effort = search::Effort::thorough>
  static void encode(const float* values, const float* weights, IQ4_NL::Block& block) noexcept {
    using Levels = search::Codebook<IQ4_NL::levels>;
    const search::Values<32> all(values, weights);
    std::uint8_t codes[32];
    block.d = search::find_half<Levels, effort>(all);
    search::take_nearest<Levels>(all, block.d, 0, codes);
    for (std::uint8_t& code : codes) code = search::code_of_level<IQ4_NL::levels>[code];
    search::pack_codes(codes, block);
  }
};

}  // namespace mica::format
