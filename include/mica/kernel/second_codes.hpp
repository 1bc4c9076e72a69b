// SPDX-License-Identifier: Apache-2.0
//
// Contract: second codes of activations. Where one number of a group is far larger than the others, a scale
// for it leaves few distinct codes to them. Such a group has second codes, those of the rounding error:
//
//   squares = the sum of code^2 of the 32 codes of a group
//   rest    = x - scale * code                  each operation rounds
//   second  = the codes of rest (kernel/quantize.hpp), where squares < 5 / 4 * 127^2: the squares of the other
//             numbers are together less than a quarter of that of the largest one; else codes and scale are 0
//
// The product with the second codes is added to that with the first ones.
#pragma once

#include "mica/kernel/quantize.hpp"
#include "mica/kernel/scalar/elementwise.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace mica::kernel {

/// The codes of a row of x, in groups of 32, become its second codes.
inline void make_second_codes(std::span<const float> x, const QuantizedRows& of, std::size_t row) noexcept {
  constexpr std::size_t n = activation_group;
  for (std::size_t k = 0; k < of.cols; k += n) {
    std::int8_t* const code = of.codes + row * of.cols + k;
    float& scale = of.scales[(row * of.cols + k) / n];
    std::int16_t* const sums = of.sums + (row * of.cols + k) / 16;
    std::int32_t squares = 0;
    for (std::size_t i = 0; i < n; ++i) squares += code[i] * code[i];
    if (4 * squares >= 5 * 127 * 127) {
      std::fill_n(code, n, std::int8_t{0});
      std::fill_n(sums, n / 16, std::int16_t{0});
      scale = 0;
      continue;
    }
    float rest[n];
    for (std::size_t i = 0; i < n; ++i) rest[i] = x[k + i] - scale * static_cast<float>(code[i]);
    scalar::quantize_group(rest, n, code, &scale, sums);
  }
}

}  // namespace mica::kernel
