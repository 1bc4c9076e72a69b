// SPDX-License-Identifier: Apache-2.0
//
// IQ4_NL: the scale with the least weighted error over the uneven levels, of either sign.
#pragma once

#include "mica/format/encode/encoder.hpp"
#include "mica/format/encode/pack.hpp"
#include "mica/format/encode/scaled_block.hpp"
#include "mica/format/iq4_nl.hpp"

#include <cstdint>

namespace mica::format {

template <>
struct Encoder<IQ4_NL> {
  template <search::Effort effort = search::Effort::thorough>
  static void encode(const float* values, const float* weights, IQ4_NL::Block& block) noexcept {
    using Levels = search::Codebook<IQ4_NL::levels>;
    const search::Values<32> all(values, weights);
    std::uint8_t codes[32];
    block.d = search::find_half<Levels, effort>(all);
    search::take_nearest<Levels>(all, block.d, 0, codes);
    for (std::uint8_t& code : codes) code = search::code_of_level<IQ4_NL::levels>[code];
    search::pack_nibbles(codes, 16, block.nibbles);
  }
};

}  // namespace mica::format
