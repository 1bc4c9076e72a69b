// SPDX-License-Identifier: Apache-2.0
//
// TQ2_0 and the search that TQ1_0 shares: the scale with the least weighted error over -1, 0 and 1. The
// largest value may be far beyond the scale.
#pragma once

#include "mica/format/encode/encoder.hpp"
#include "mica/format/encode/pack.hpp"
#include "mica/format/encode/scaled_block.hpp"
#include "mica/format/few_bits.hpp"

#include <cstdint>

namespace mica::format {

template <>
struct Encoder<TQ2_0> {
  static void encode(const float* values, const float* weights, TQ2_0::Block& block) noexcept {
    std::uint8_t codes[256];
    block.d = find_ternary(values, weights, codes);
    search::pack_pairs(codes, 0, block.pairs);
  }

  /// The scale of 256 values and their codes, 0 to 2.
  static Half find_ternary(const float* values, const float* weights, std::uint8_t* codes) noexcept {
    using Levels = search::Integers<-1, 1>;
    const search::Values<256> all(values, weights);
    const Half d = search::find_half<Levels>(all, {1, 6});
    search::take_nearest<Levels>(all, d, -1, codes);
    return d;
  }
};

}  // namespace mica::format
