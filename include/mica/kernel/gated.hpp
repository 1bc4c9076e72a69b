// SPDX-License-Identifier: Apache-2.0
//
// Contract: the gated activation of the feed-forward block (Shazeer, arXiv 2002.05202) and of attention
// outputs. Number by number, with g of the gate and u of the other half; the functions are those of
// kernel/activation.hpp:
//
//   silu:     silu(g) * u
//   gelu:     gelu_tanh(g) * u
//   sigmoid:  u / (1 + exp(-g))
//   clamped:  x = g > 7 ? 7 : g;  y = u > 7 ? 7 : u < -7 ? -7 : u;  (x / (1 + exp(-1.702 * x))) * (y + 1)
//
// A NaN in either half makes the result NaN.
#pragma once

#include "mica/base/matrix_view.hpp"

namespace mica::kernel {

/// The function of the gate.
enum class Gate : unsigned char {
  silu,     ///< SwiGLU
  gelu,     ///< GeGLU, the tanh form
  sigmoid,  ///< a gate of outputs
  clamped,  ///< SwiGLU with limits, a steeper sigmoid and one added to u: gpt-oss
};

/// The numbers of Gate::clamped.
struct ClampedGate {
  static constexpr float limit = 7.0f;
  static constexpr float slope = 1.702f;
};

/// Rows [first, last): out = gate(gate) * up; out may be gate or up.
struct GatedArgs {
  Gate kind = Gate::silu;
  MatrixView<const float> gate;  // (n, k)
  MatrixView<const float> up;    // (n, k)
  MatrixView<float> out;         // (n, k)
  std::size_t first = 0;
  std::size_t last = 0;
};

}  // namespace mica::kernel
