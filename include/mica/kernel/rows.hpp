// SPDX-License-Identifier: Apache-2.0
//
// Contract: what is done to rows number by number.
//
//   add:      y = fma(x, scale, y)
//   scale:    x = x * factor
//   softcap:  x = cap * tanh(x * (1 / cap)), with 1 / cap rounded once and tanh of
//             kernel/activation.hpp: within 6e-7 cap
#pragma once

#include "mica/base/matrix_view.hpp"

namespace mica::kernel {

/// Rows [first, last) of y get those of x, times `scale`, added.
struct AddArgs {
  MatrixView<const float> x;  // (n, k)
  MatrixView<float> y;        // (n, k)
  float scale = 1;
  std::size_t first = 0;
  std::size_t last = 0;
};

/// Rows [first, last) of x are multiplied by a number.
struct ScaleArgs {
  MatrixView<float> x;  // (n, k)
  float factor = 1;
  std::size_t first = 0;
  std::size_t last = 0;
};

/// Rows [first, last) of x are bent into (-cap, cap).
struct SoftcapArgs {
  MatrixView<float> x;  // (n, k)
  float cap = 1;        // above 0
  std::size_t first = 0;
  std::size_t last = 0;
};

}  // namespace mica::kernel
