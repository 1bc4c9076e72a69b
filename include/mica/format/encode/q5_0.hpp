// SPDX-License-Identifier: Apache-2.0
//
// Q5_0: the scale with the least weighted error, of either sign, because there is one more code below zero
// than above.
#pragma once

#include "mica/format/encode/encoder.hpp"
#include "mica/format/encode/pack.hpp"
#include "mica/format/encode/scaled_block.hpp"
#include "mica/format/q5_0.hpp"

#include <cstdint>

namespace mica::format {

template <>
struct Encoder<Q5_0> {
  template <search::Effort effort = search::Effort::thorough>
  static void encode(const float* values, const float* weights, Q5_0::Block& block) noexcept {
    using Levels = search::Integers<-16, 15>;
    const search::Values<32> all(values, weights);
    std::uint8_t codes[32];
    block.d = search::find_half<Levels, effort>(all);
    search::take_nearest<Levels>(all, block.d, -16, codes);
    search::pack_nibbles(codes, 16, block.nibbles);
    search::pack_fifth_bits(codes, block.high);
  }
};

}  // namespace mica::format
