// SPDX-License-Identifier: Apache-2.0
//
// The feed-forward block: down(act(gate(x)) * up(x)), or down(act(gate(x))) where there is no up.
#pragma once

#include "mica/block/linear.hpp"
#include "mica/block/norm.hpp"

#include <cmath>

namespace mica::block {

/// The weights of one network.
template <class List>
struct GatedWeights {
  tensor::AnyMatrix<List> gate;      // (ff_width, width)
  tensor::AnyMatrix<List> up;        // (ff_width, width), or empty
  tensor::AnyMatrix<List> down;      // (width, ff_width)
  const float* gate_bias = nullptr;  // (ff_width), or null
  const float* up_bias = nullptr;    // (ff_width), or null
  const float* down_bias = nullptr;  // (width), or null
};

/// Weights and scratch of one feed-forward block for n tokens.
template <class List>
struct FeedForward {
  GatedWeights<List> weights;
  kernel::Gate kind = kernel::Gate::silu;
  float sparsity = 0;                  // deviations above the mean (keep_large)
  MatrixView<float> gate_out;          // (n, ff_width)
  MatrixView<float> up_out;            // (n, ff_width), or empty
  kernel::QuantizedRows hidden_codes;  // (n, ff_width)
};

/// Gaussian top-k (Gemma 3n): x = max(x - (mean + deviations * deviation), 0), statistics of the row in
/// double.
inline void keep_large(std::span<float> x, float deviations) noexcept {
  double sum = 0, squares = 0;
  for (const float v : x) sum += static_cast<double>(v);
  const double mean = sum / static_cast<double>(x.size());
  for (const float v : x) squares += (static_cast<double>(v) - mean) * (static_cast<double>(v) - mean);
  const double deviation = std::sqrt(squares / static_cast<double>(x.size()));
  const auto cutoff = static_cast<float>(mean + static_cast<double>(deviations) * deviation);
  for (float& v : x) v = v > cutoff ? v - cutoff : (v <= cutoff ? 0.0f : v);  // NaN stays
}

/// gate_out = act(gate(x)) * up(x), or act(gate(x)), and its codes unless they are made later. The codes of x
/// may be in the memory of hidden_codes: they are not needed any more.
template <Kernels K, Executor E, class List>
void feed_forward_in(E& executor, const FeedForward<List>& f, const kernel::Input& x,
                     bool codes = true) noexcept {
  const std::array both{Product<List>{f.weights.gate, f.gate_out, false, f.weights.gate_bias},
                        Product<List>{f.weights.up, f.up_out, false, f.weights.up_bias}};
  project<K>(executor, x, std::span<const Product<List>>(both).first(f.weights.up.empty() ? 1 : 2));
  const bool quantized = codes && wants_codes(f.hidden_codes, f.weights.down);
  executor.run(f.gate_out.rows(), [&](std::size_t row, std::size_t) noexcept {
    if (f.sparsity != 0) keep_large(f.gate_out[row], f.sparsity);
    K::gated(kernel::GatedArgs{f.kind, f.gate_out, f.up_out, f.gate_out, row, row + 1});
    if (quantized) K::quantize(kernel::QuantizeArgs{f.gate_out, f.hidden_codes, row, row + 1});
  });
}

/// y (+)= down(gate_out).
template <Kernels K, Executor E, class List>
void feed_forward_out(E& executor, const FeedForward<List>& f, MatrixView<float> y, bool add) noexcept {
  const bool quantized = wants_codes(f.hidden_codes, f.weights.down);
  project<K>(executor, kernel::Input{f.gate_out, kernel::codes_if(quantized, f.hidden_codes)},
             std::array{Product<List>{f.weights.down, y, add, f.weights.down_bias}});
}

/// y (+)= FFN(x).
template <Kernels K, Executor E, class List>
void feed_forward(E& executor, const FeedForward<List>& f, const kernel::Input& x, MatrixView<float> y,
                  bool add) noexcept {
  feed_forward_in<K>(executor, f, x);
  feed_forward_out<K>(executor, f, y, add);
}

}  // namespace mica::block
