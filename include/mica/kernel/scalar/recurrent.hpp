// SPDX-License-Identifier: Apache-2.0
//
// Specification of kernel/recurrent.hpp, in plain loops.
#pragma once

#include "mica/kernel/activation.hpp"
#include "mica/kernel/recurrent.hpp"

#include <cmath>
#include <span>

namespace mica::kernel::scalar {

/// One channel after the other.
inline void causal_conv(const CausalConvArgs& a) noexcept {
  const std::size_t n = a.x.rows(), before = a.taps - 1;
  for (std::size_t c = a.first; c < a.last; ++c) {
    const auto in = [&](std::size_t row) { return row < before ? a.state[row][c] : a.x[row - before][c]; };
    for (std::size_t t = 0; t < n; ++t) {
      float acc = 0;
      for (std::size_t j = 0; j < a.taps; ++j) acc = std::fma(a.weight[c * a.taps + j], in(t + j), acc);
      a.y[t][c] = silu(acc);
    }
    for (std::size_t row = 0; row < before; ++row) a.state[row][c] = in(n + row);
  }
}

/// sum4 of column j of the state with one factor per row.
[[nodiscard]] inline float column_sum(MatrixView<const float> state, std::size_t j,
                                      std::span<const float> factor) noexcept {
  float c[4] = {};
  for (std::size_t i = 0; i < state.rows(); ++i) c[i % 4] = std::fma(state[i][j], factor[i], c[i % 4]);
  return (c[0] + c[2]) + (c[1] + c[3]);
}

/// One token after the other, and of each one column after the other.
inline void delta_rule(const DeltaRuleArgs& a) noexcept {
  for (std::size_t t = 0; t < a.q.rows(); ++t) {
    const float decay = a.decay[t * a.decay_stride], beta = a.beta[t * a.decay_stride];
    for (std::size_t j = a.first; j < a.last; ++j) {
      for (std::size_t i = 0; i < a.state.rows(); ++i) a.state[i][j] *= decay;
      const float u = beta * (a.v[t][j] - column_sum(a.state, j, a.k[t]));
      for (std::size_t i = 0; i < a.state.rows(); ++i) a.state[i][j] = std::fma(a.k[t][i], u, a.state[i][j]);
      a.out[t][j] = column_sum(a.state, j, a.q[t]);
    }
  }
}

}  // namespace mica::kernel::scalar
