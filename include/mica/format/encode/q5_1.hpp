// SPDX-License-Identifier: Apache-2.0
//
// Q5_1: the scale and offset with the least weighted error.
#pragma once

#include "mica/format/encode/encoder.hpp"
#include "mica/format/encode/lined_block.hpp"
#include "mica/format/encode/pack.hpp"
#include "mica/format/q5_1.hpp"

#include <cstdint>

namespace mica::format {

template <>
struct Encoder<Q5_1> {
  template <search::Effort effort = search::Effort::thorough>
  static void encode(const float* values, const float* weights, Q5_1::Block& block) noexcept {
    search::Values<32> all(values, weights);
    std::uint8_t codes[32];
    const auto [d, m] = search::find_half_line<31, effort>(all, codes);
    block.d = d;
    block.m = m;
    search::pack_nibbles(codes, 16, block.nibbles);
    search::pack_fifth_bits(codes, block.high);
  }
};

}  // namespace mica::format
