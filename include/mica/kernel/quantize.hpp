// SPDX-License-Identifier: Apache-2.0
//
// Contract: activations become int8 once per product input, with one float scale per 32 values.
//
// For every 32 values x of a row:
//   amax    = max |x|
//   scale   = amax / 127                       (0 when amax < 1e-30, NaN when any x is not finite)
//   code    = round to nearest even(x * (127 / amax)), in [-127, 127]   (0 in both cases above)
//   sums    = the exact sums of the codes of either 16
// A NaN scale makes every product that reads it NaN, so a non-finite activation cannot hide behind small integers.
#pragma once

#include "mica/base/matrix_view.hpp"

#include <cstddef>
#include <cstdint>

namespace mica::kernel {

/// Values that share an activation scale.
inline constexpr std::size_t activation_group = 32;

/// Below this a group of activations counts as zero.
inline constexpr float activation_floor = 1e-30f;

/// Int8 activations, (rows, cols); cols is a multiple of 32. A view.
struct QuantizedRows {
  std::int8_t* codes = nullptr;  // (rows, cols)
  float* scales = nullptr;       // (rows, cols / 32)
  std::int16_t* sums = nullptr;  // (rows, cols / 16)
  std::size_t rows = 0;
  std::size_t cols = 0;

  [[nodiscard]] const std::int8_t* row_codes(std::size_t r) const noexcept { return codes + r * cols; }
  [[nodiscard]] const float* row_scales(std::size_t r) const noexcept { return scales + r * (cols / 32); }
  [[nodiscard]] const std::int16_t* row_sums(std::size_t r) const noexcept { return sums + r * (cols / 16); }
};

/// Rows [first, last) of x become the same rows of out.
struct QuantizeArgs {
  MatrixView<const float> x;  // (rows, cols)
  QuantizedRows out;          // (rows, cols)
  std::size_t first = 0;
  std::size_t last = 0;
};

}  // namespace mica::kernel
