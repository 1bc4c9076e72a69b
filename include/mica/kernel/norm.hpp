// SPDX-License-Identifier: Apache-2.0
//
// Contract: root-mean-square norm (Zhang and Sennrich, arXiv 1910.07467), row by row.
//
//   ss = the sum of x[k]^2 in sixteen chains and their tree (kernel/matmul.hpp), each step fma(x, x, c)
//   r  = 1 / sqrt(ss / k + eps), every operation rounded
//   y  = (x * r) * weight
#pragma once

#include "mica/base/matrix_view.hpp"

namespace mica::kernel {

/// Rows [first, last) of y become the normed rows of x; y may be x.
struct RmsNormArgs {
  MatrixView<const float> x;      // (n, k)
  const float* weight = nullptr;  // (k)
  float epsilon = 0;
  MatrixView<float> y;  // (n, k)
  std::size_t first = 0;
  std::size_t last = 0;
};

}  // namespace mica::kernel
