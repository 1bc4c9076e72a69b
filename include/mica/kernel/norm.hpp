// SPDX-License-Identifier: Apache-2.0
//
// Contract: norms, row by row. ss = the sum of x[k]^2 in sixteen chains and their tree (kernel/matmul.hpp),
// each step fma(x, x, c); every other operation rounds.
//
//   root mean square (Zhang and Sennrich, arXiv 1910.07467):
//     r = 1 / sqrt(ss / k + eps);  y = (x * r) * weight, or x * r without a weight
//   length:
//     y = x * (scale / sqrt(ss + eps))
#pragma once

#include "mica/base/matrix_view.hpp"

namespace mica::kernel {

/// Rows [first, last) of y become the normed rows of x; y may be x.
struct RmsNormArgs {
  MatrixView<const float> x;      // (n, k)
  const float* weight = nullptr;  // (k), or null: no multiplication by a weight
  float epsilon = 0;
  MatrixView<float> y;  // (n, k)
  std::size_t first = 0;
  std::size_t last = 0;
};

/// Rows [first, last) of y become the rows of x brought to the length `scale`; y may be x.
struct L2NormArgs {
  MatrixView<const float> x;  // (n, k)
  float epsilon = 0;          // added to the square of the length; above 0, or rows of zeros become NaN
  float scale = 1;
  MatrixView<float> y;  // (n, k)
  std::size_t first = 0;
  std::size_t last = 0;
};

}  // namespace mica::kernel
