// SPDX-License-Identifier: Apache-2.0
//
// NF4: the scale with the least weighted error, of either sign, because the levels are denser below zero.
#pragma once

#include "mica/format/encode/encoder.hpp"
#include "mica/format/encode/pack.hpp"
#include "mica/format/encode/scaled_block.hpp"
#include "mica/format/nf4.hpp"

#include <cstddef>
#include <cstdint>

namespace mica::format {

template <>
struct Encoder<NF4> {
  static void encode(const float* values, const float* weights, NF4::Block& block) noexcept {
    const search::Values<32> all(values, weights);
    block.d = search::find_half<search::Codebook<NF4::levels>>(all);
    const float inverse = search::inverse_or_zero(all.loaded(block.d));
    std::uint8_t codes[32];
    for (std::size_t i = 0; i < 32; ++i) codes[i] = NF4::nearest(all.x[i] * inverse);
    search::pack_nibbles(codes, 16, block.nibbles);
  }
};

}  // namespace mica::format
