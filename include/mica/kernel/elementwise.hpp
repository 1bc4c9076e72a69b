// SPDX-License-Identifier: Apache-2.0
//
// Contract: what is done to each row by itself: norms, rotation, gates, and what is done number by number.
// Every operation rounds; fma() rounds once.
//
// Norms. ss = the sum of x[k]^2 in sixteen chains and their tree (kernel/matmul.hpp), each step fma(x, x, c).
//
//   root mean square (Zhang and Sennrich, arXiv 1910.07467):
//     r = 1 / sqrt(ss / k + eps);  y = (x * r) * weight, or x * r without a weight
//   length:
//     y = x * (scale / sqrt(ss + eps))
//   layer (Ba, Kiros and Hinton, arXiv 1607.06450), with ss of x - mean:
//     mean = (the sum of x in sixteen chains and their tree) / k;  r = 1 / sqrt(ss / k + eps)
//     y = fma((x - mean) * r, weight, bias), or ((x - mean) * r) * weight without a bias
//
// Rotary position embedding (Su et al., arXiv 2104.09864) of every head of a row, by tables of cosines and
// sines. Pair i of a head is (2i, 2i + 1) for adjacent pairs and (i, i + dims / 2) for halves:
//
//   a' = fma(a, cos, -(b * sin))
//   b' = fma(a, sin, b * cos)
//
// The gated activation of the feed-forward block (Shazeer, arXiv 2002.05202) and of attention outputs, with g
// of the gate and u of the other half, which is 1 where there is none; the functions are those of
// kernel/activation.hpp. A NaN in either half makes the result NaN.
//
//   silu:     silu(g) * u
//   gelu:     gelu_tanh(g) * u
//   gelu_erf: gelu_erf(g) * u
//   sigmoid:  u / (1 + exp(-g))
//   clamped:  x = g > 7 ? 7 : g;  y = u > 7 ? 7 : u < -7 ? -7 : u;  (x / (1 + exp(-1.702 * x))) * (y + 1)
//
// Number by number.
//
//   add:      y = fma(x, scale, y)
//   scale:    x = x * factor
//   softcap:  x = cap * tanh(x * (1 / cap)), with 1 / cap rounded once and tanh of
//             kernel/activation.hpp: within 6e-7 cap
#pragma once

#include "mica/base/matrix_view.hpp"

namespace mica::kernel {

/// Rows [first, last) of y become the normed rows of x; y may be x.
struct RmsNormArgs {
  MatrixView<const float> x;      // (n, k)
  const float* weight = nullptr;  // (k), or null: no multiplication by a weight
  float epsilon = 0;              // added to the mean square
  MatrixView<float> y;            // (n, k)
  std::size_t first = 0;
  std::size_t last = 0;
};

/// Rows [first, last) of y become the rows of x brought to the length `scale`; y may be x.
struct L2NormArgs {
  MatrixView<const float> x;  // (n, k)
  float epsilon = 0;          // added to the square of the length; above 0, or rows of zeros become NaN
  float scale = 1;            // the new length
  MatrixView<float> y;        // (n, k)
  std::size_t first = 0;
  std::size_t last = 0;
};

/// Rows [first, last) of y become the rows of x with mean 0 and variance 1, times a weight, plus a bias; y
/// may be x.
struct LayerNormArgs {
  MatrixView<const float> x;      // (n, k)
  const float* weight = nullptr;  // (k)
  const float* bias = nullptr;    // (k), or null: none is added
  float epsilon = 0;              // added to the variance
  MatrixView<float> y;            // (n, k)
  std::size_t first = 0;
  std::size_t last = 0;
};

/// Which two numbers of a head rotate together.
enum class RopePairs : unsigned char {
  adjacent,  ///< (2i, 2i + 1): Llama files
  halves,    ///< (i, i + dims / 2): most other families
};

/// Rotates rows [first, last) of x in place. Numbers of a head from `dims` on stay as they are.
struct RopeArgs {
  MatrixView<float> x;                    // (n, heads * head_dim)
  std::size_t head_dim = 0;               // at least dims
  std::size_t dims = 0;                   // rotated numbers per head, even
  RopePairs pairs = RopePairs::adjacent;  // as the weights of the family expect
  MatrixView<const float> cos;            // (n, dims / 2)
  MatrixView<const float> sin;            // (n, dims / 2)
  std::size_t first = 0;
  std::size_t last = 0;
};

/// The function of the gate.
enum class Gate : unsigned char {
  silu,      ///< SwiGLU
  gelu,      ///< GeGLU, the tanh form
  sigmoid,   ///< a gate of outputs
  gelu_erf,  ///< the exact form of GELU
  clamped,   ///< SwiGLU with limits, a steeper sigmoid and one added to u: gpt-oss
};

/// The numbers of Gate::clamped.
struct ClampedGate {
  static constexpr float limit = 7.0f;    // of g from above, of u from both sides
  static constexpr float slope = 1.702f;  // of the sigmoid
};

/// Rows [first, last): out = gate(gate) * up; out may be gate or up. An empty up counts as ones.
struct GatedArgs {
  Gate kind = Gate::silu;        // applied to `gate`
  MatrixView<const float> gate;  // (n, k)
  MatrixView<const float> up;    // (n, k), or empty
  MatrixView<float> out;         // (n, k)
  std::size_t first = 0;
  std::size_t last = 0;
};

/// Rows [first, last) of y get those of x, times `scale`, added.
struct AddArgs {
  MatrixView<const float> x;  // (n, k)
  MatrixView<float> y;        // (n, k)
  float scale = 1;            // y += scale * x
  std::size_t first = 0;
  std::size_t last = 0;
};

/// Rows [first, last) of x are multiplied by a number.
struct ScaleArgs {
  MatrixView<float> x;  // (n, k)
  float factor = 1;     // x *= factor
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
