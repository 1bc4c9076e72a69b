// SPDX-License-Identifier: Apache-2.0
//
// Q1_0: the weighted mean of magnitudes is the scale with the least error, since signs do not depend on it.
#pragma once

#include "mica/format/encode/encoder.hpp"
#include "mica/format/encode/values.hpp"
#include "mica/format/few_bits.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace mica::format {

template <>
struct Encoder<Q1_0> {
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

}  // namespace mica::format
