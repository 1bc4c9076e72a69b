// SPDX-License-Identifier: Apache-2.0
//
// Contract: activations become int8 once per product input, with one float scale per 32 values.
//
// For every 32 values x of a row:
//   amax    = max |x|
//   scale   = amax / 127                       (0 when amax < 1e-30, NaN when any x is not finite)
//   code    = round to nearest even(x * (127 / amax)), in [-127, 127]   (0 in both cases above)
//   sums    = the exact sums of the codes of either 16
// Where products of eight bits read them (kernel/fast8.hpp), a run of 256 values shares amax and scale, which
// then stands in all of its eight places; the last run of a row may be shorter.
//
// A NaN scale makes every product that reads it NaN, so a non-finite activation cannot hide behind small
// integers.
#pragma once

#include "mica/base/matrix_view.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>

namespace mica::kernel {

/// Values that share an activation scale.
inline constexpr std::size_t activation_group = 32;

/// Of products by kernel/fast8.hpp: values that share an activation scale, what widths are a multiple of, and
/// the minimum of tokens unless another one is asked for.
inline constexpr std::size_t fast8_group = 256;
inline constexpr std::size_t fast8_step = 64;
inline constexpr std::size_t fast8_tokens = 17;

/// Below this a group of activations counts as zero.
inline constexpr float activation_floor = 1e-30f;

/// Int8 activations, (rows, cols). A view.
struct QuantizedRows {
  std::int8_t* codes = nullptr;  // (rows, cols)
  float* scales = nullptr;       // (rows, cols / 32)
  std::int16_t* sums = nullptr;  // (rows, cols / 16)
  std::size_t rows = 0;          // 0: no codes
  std::size_t cols = 0;          // a multiple of 32
  std::size_t fast8_from = 0;    // fewest rows of products that may follow kernel/fast8.hpp; 0: none

  /// Those of row r < rows.
  [[nodiscard]] const std::int8_t* row_codes(std::size_t r) const noexcept { return codes + r * cols; }
  [[nodiscard]] const float* row_scales(std::size_t r) const noexcept { return scales + r * (cols / 32); }
  [[nodiscard]] const std::int16_t* row_sums(std::size_t r) const noexcept { return sums + r * (cols / 16); }
};

/// x where its codes were made, else no codes.
[[nodiscard]] constexpr QuantizedRows codes_if(bool made, const QuantizedRows& x) noexcept {
  return made ? x : QuantizedRows{};
}

/// Values that share a scale.
[[nodiscard]] constexpr std::size_t scale_group(const QuantizedRows& x) noexcept {
  const bool fast8 = x.fast8_from != 0 && x.rows >= x.fast8_from && x.cols % fast8_step == 0;
  return fast8 ? fast8_group : activation_group;
}

/// A fast8_from by which any part of the rows of x shares scales as all of them do.
[[nodiscard]] constexpr std::size_t fast8_from_of_parts(const QuantizedRows& x) noexcept {
  if (x.fast8_from == 0) return 0;
  return scale_group(x) == fast8_group ? 1 : std::numeric_limits<std::size_t>::max();
}

/// Rows [first, first + n) of x. A scale is of 32 or of 256 values as in x, also where n is small.
[[nodiscard]] constexpr QuantizedRows rows_of(const QuantizedRows& x, std::size_t first,
                                              std::size_t n) noexcept {
  if (x.rows == 0) return {};
  return {x.codes + first * x.cols,
          x.scales + first * (x.cols / activation_group),
          x.sums + first * (x.cols / 16),
          n,
          x.cols,
          fast8_from_of_parts(x)};
}

/// Rows [first, last) of x become the same rows of out.
struct QuantizeArgs {
  MatrixView<const float> x;  // (rows, cols)
  QuantizedRows out;          // (rows, cols)
  std::size_t first = 0;
  std::size_t last = 0;
};

}  // namespace mica::kernel
