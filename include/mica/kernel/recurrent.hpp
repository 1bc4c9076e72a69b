// SPDX-License-Identifier: Apache-2.0
//
// Contracts of the operations that carry a state from token to token.
//
// Causal convolution over tokens, each channel by itself, then SiLU (kernel/activation.hpp). With `in` the
// rows of the state followed by the rows of x, so that in[t + taps - 1] is x[t]:
//
//   acc = 0;  acc = fma(weight[c][j], in[t + j][c], acc) for j in 0..taps-1 in order;  y[t][c] = silu(acc)
//   state = the last taps - 1 rows of `in`
//
// A row of y depends on taps inputs and on nothing else: tokens in one call or in several, the same bits.
//
// The gated delta rule (Gated DeltaNet: Yang, Kautz and Hatamizadeh, arXiv 2412.06464) of one value head. For
// each token in order and each column j:
//
//   S[i][j] = S[i][j] * decay
//   r       = sum4 over i of S[i][j] k[i]
//   u       = beta * (v[j] - r)
//   S[i][j] = fma(k[i], u, S[i][j])
//   out[j]  = sum4 over i of S[i][j] q[i]
//   sum4:     c[i % 4] = fma(S[i][j], factor, c[i % 4]) for i in order, from 0;  (c[0] + c[2]) + (c[1] + c[3])
//
// Columns do not meet. So a kernel keeps a strip of columns in the first-level cache and takes all tokens
// over it, and prefill in chunks of any size gives the bits of token by token. That is why there is no
// second, chunked form of the rule (products of Householder factors, as GPUs want it): it would add in
// another order and read the state no more seldom.
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

/// Columns [first, last) of the state, of v and of out, over n tokens.
struct DeltaRuleArgs {
  MatrixView<const float> q;     // (n, k_dim)
  MatrixView<const float> k;     // (n, k_dim)
  MatrixView<const float> v;     // (n, v_dim)
  const float* decay = nullptr;  // (n) decay_stride apart: what the state is multiplied by, exp(g)
  const float* beta = nullptr;   // (n) decay_stride apart
  std::size_t decay_stride = 1;  // numbers from a token to the next
  MatrixView<float> state;       // (k_dim, v_dim)
  MatrixView<float> out;         // (n, v_dim); may be v
  std::size_t first = 0;
  std::size_t last = 0;
};

}  // namespace mica::kernel
