// SPDX-License-Identifier: Apache-2.0
//
// MXFP4: of the powers of two around the largest value, the one with the least weighted error.
#pragma once

#include "mica/format/encode/encoder.hpp"
#include "mica/format/encode/pack.hpp"
#include "mica/format/encode/scale.hpp"
#include "mica/format/encode/values.hpp"
#include "mica/format/fp4.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace mica::format {

template <>
struct Encoder<MXFP4> {
  static void encode(const float* values, const float* weights, MXFP4::Block& block) noexcept {
    const search::Values<32> all(values, weights);
    block.exponent = choose_exponent(all);
    const float inverse = all.unit / MXFP4::half_scale(block.exponent);
    std::uint8_t codes[32];
    for (std::size_t i = 0; i < 32; ++i) {
      const auto level = static_cast<std::int8_t>(Levels::nearest(all.x[i] * inverse));
      codes[i] = search::code_of_level<detail::doubled_fp4>[static_cast<std::uint8_t>(level)];
    }
    search::pack_nibbles(codes, 16, block.nibbles);
  }

 private:
  static constexpr std::int8_t ascending[15] = {-12, -8, -6, -4, -3, -2, -1, 0, 1, 2, 3, 4, 6, 8, 12};
  using Levels = search::Codebook<ascending>;

  /// The largest value is 1 to 2 units and the largest level 12, so half the scale is about 2^-4 to 2^-2
  /// units.
  static std::uint8_t choose_exponent(const search::Values<32>& all) noexcept {
    constexpr std::size_t count = 4;
    std::uint8_t exponent[count];
    float scale[count], inverse[count], error[count] = {};
    for (std::size_t k = 0; k < count; ++k) {
      const int wanted = std::ilogb(all.unit) + 128 - 5 + static_cast<int>(k);
      exponent[k] = static_cast<std::uint8_t>(std::clamp(wanted, 0, 254));
      scale[k] = MXFP4::half_scale(exponent[k]) / all.unit;
      inverse[k] = 1 / scale[k];
    }
    for (std::size_t i = 0; i < 32; ++i) {
      float q[count];
      for (std::size_t k = 0; k < count; ++k) q[k] = all.x[i] * inverse[k];
      Levels::settle(q);
      for (std::size_t k = 0; k < count; ++k) {
        const float miss = all.x[i] - scale[k] * q[k];
        error[k] += all.w[i] * miss * miss;
      }
    }
    return exponent[std::min_element(error, error + count) - error];
  }
};

}  // namespace mica::format
