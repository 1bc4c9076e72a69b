// SPDX-License-Identifier: Apache-2.0
//
// Q2_0: the scale with the least weighted error over -1, 0, 1 and 2, of either sign.
#pragma once

#include "mica/format/encode/encoder.hpp"
#include "mica/format/encode/scaled_block.hpp"
#include "mica/format/few_bits.hpp"

#include <cstddef>
#include <cstdint>

namespace mica::format {

template <>
struct Encoder<Q2_0> {
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

}  // namespace mica::format
