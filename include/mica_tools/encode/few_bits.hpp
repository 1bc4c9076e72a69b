// SPDX-License-Identifier: Apache-2.0
//
// Q1_0, Q2_0, TQ2_0 and TQ1_0: one scale for a block of codes of one or two bits.
#pragma once

#include "mica/format/encode/encoder.hpp"
#include "mica/format/encode/scaled_block.hpp"
#include "mica/format/encode/values.hpp"
#include "mica/format/few_bits.hpp"
#include "mica_tools/encode/pack_pairs.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace mica::format {

/// The weighted mean of magnitudes is the scale with the least error, since signs do not depend on it.
template <>
struct Encoder<Q1_0> {
  /// Takes 128 values and as many weights, positive and finite (RowWeights).
  static void encode(const float* values, const float* weights, Q1_0::Block& block) noexcept {
    const search::Values<128> all(values, weights);
    float sum = 0, sum_w = 0;
    block = {};
    for (std::size_t i = 0; i < 128; ++i) {
      sum += all.w[i] * std::fabs(all.x[i]);
      sum_w += all.w[i];
      if (all.x[i] >= 0) block.bits[i / 8] = static_cast<std::uint8_t>(block.bits[i / 8] | 1u << (i % 8));
    }
    block.d = search::finite_half(sum / sum_w * all.unit);
  }
};

/// The scale with the least weighted error over -1, 0, 1 and 2, of either sign.
template <>
struct Encoder<Q2_0> {
  /// Takes 64 values and as many weights, positive and finite (RowWeights).
  static void encode(const float* values, const float* weights, Q2_0::Block& block) noexcept {
    using Levels = search::Integers<-1, 2>;
    const search::Values<64> all(values, weights);
    std::uint8_t codes[64];
    block.d = search::find_half<Levels>(all, {0.7f, 4});
    search::take_nearest<Levels>(all, block.d, -1, codes);
    for (std::size_t j = 0; j < 16; ++j) {
      const std::uint8_t* const four = codes + 4 * j;
      block.pairs[j] = static_cast<std::uint8_t>(four[0] | four[1] << 2 | four[2] << 4 | four[3] << 6);
    }
  }
};

/// The scale with the least weighted error over -1, 0 and 1. The largest value may be far beyond it.
template <>
struct Encoder<TQ2_0> {
  /// Takes 256 values and as many weights, positive and finite (RowWeights).
  static void encode(const float* values, const float* weights, TQ2_0::Block& block) noexcept {
    std::uint8_t codes[256];
    block.d = find_ternary(values, weights, codes);
    search::pack_pairs(codes, 0, block.pairs);
  }

  /// The scale of 256 values and their codes, 0 to 2; here and in TQ1_0.
  static Half find_ternary(const float* values, const float* weights, std::uint8_t* codes) noexcept {
    using Levels = search::Integers<-1, 1>;
    const search::Values<256> all(values, weights);
    const Half d = search::find_half<Levels>(all, {1, 6});
    search::take_nearest<Levels>(all, d, -1, codes);
    return d;
  }
};

/// The values of TQ2_0, five to a byte.
template <>
struct Encoder<TQ1_0> {
  /// Takes 256 values and as many weights, positive and finite (RowWeights).
  static void encode(const float* values, const float* weights, TQ1_0::Block& block) noexcept {
    std::uint8_t codes[256];
    block.d = Encoder<TQ2_0>::find_ternary(values, weights, codes);
    pack_digits(codes, 32, 5, block.digits);
    pack_digits(codes + 160, 16, 5, block.digits + 32);
    pack_digits(codes + 240, 4, 4, block.digits + 48);
  }

 private:
  /// Byte j is the fraction whose ternary digits are codes j, j + n, ..., in 256ths and rounded up.
  static void pack_digits(const std::uint8_t* codes, std::size_t n, std::size_t places,
                          std::uint8_t* bytes) noexcept {
    for (std::size_t j = 0; j < n; ++j) {
      unsigned number = 0;
      for (std::size_t place = 0; place < 5; ++place) {
        number = 3 * number + (place < places ? codes[n * place + j] : 0u);
      }
      bytes[j] = static_cast<std::uint8_t>((number * 256 + 242) / 243);
    }
  }
};

}  // namespace mica::format
