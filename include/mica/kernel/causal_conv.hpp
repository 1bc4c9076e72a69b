// SPDX-License-Identifier: Apache-2.0
//
// Contract: causal convolution over tokens, each channel by itself, then SiLU (kernel/activation.hpp). With
// `in` the rows of the state followed by the rows of x, so that in[t + taps - 1] is x[t]:
//
//   acc = 0;  acc = fma(weight[c][j], in[t + j][c], acc) for j in 0..taps-1 in order;  y[t][c] = silu(acc)
//   state = the last taps - 1 rows of `in`
//
// A row of y depends on taps inputs and on nothing else: tokens in one call or in several, the same bits.
#pragma once

#include "mica/base/matrix_view.hpp"

namespace mica::kernel {

/// The longest convolution that the kernels take.
inline constexpr std::size_t max_taps = 8;

/// Channels [first, last) of every token, and of the state.
struct CausalConvArgs {
  MatrixView<const float> x;      // (n, channels)
  const float* weight = nullptr;  // (channels, taps)
  std::size_t taps = 0;           // 1 to max_taps
  MatrixView<float>
      state;            // (taps - 1, channels) inputs before token 0, oldest first; then those before token n
  MatrixView<float> y;  // (n, channels); not x
  std::size_t first = 0;
  std::size_t last = 0;
};

}  // namespace mica::kernel
