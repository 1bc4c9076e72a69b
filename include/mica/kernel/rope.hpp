// SPDX-License-Identifier: Apache-2.0
//
// Contract: rotary position embedding (Su et al., arXiv 2104.09864) of every head of a row, by tables of
// cosines and sines. Pair i of a head is (2i, 2i + 1) for adjacent pairs and (i, i + dims / 2) for halves:
//
//   a' = fma(a, cos, -(b * sin))
//   b' = fma(a, sin, b * cos)
#pragma once

#include "mica/base/matrix_view.hpp"

namespace mica::kernel {

/// Which two numbers of a head rotate together.
enum class RopePairs : unsigned char {
  adjacent,  ///< (2i, 2i + 1): Llama files
  halves,    ///< (i, i + dims / 2): most other families
};

/// Rotates rows [first, last) of x in place. Numbers of a head from `dims` on stay as they are.
struct RopeArgs {
  MatrixView<float> x;  // (n, heads * head_dim)
  std::size_t head_dim = 0;
  std::size_t dims = 0;  // rotated numbers per head, even
  RopePairs pairs = RopePairs::adjacent;
  MatrixView<const float> cos;  // (n, dims / 2)
  MatrixView<const float> sin;  // (n, dims / 2)
  std::size_t first = 0;
  std::size_t last = 0;
};

}  // namespace mica::kernel
