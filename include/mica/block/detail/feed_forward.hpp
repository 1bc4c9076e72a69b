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
  bool second_codes = false;           // of the input (InputCodes)
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

/// The products with gate and up, without their biases: one or two.
template <class List>
struct GatedProducts {
  std::array<Product<List>, 2> both;
  std::size_t count;

  GatedProducts(const GatedWeights<List>& w, MatrixView<float> gate, MatrixView<float> up)
      : both{Product<List>{w.gate, gate}, Product<List>{w.up, up}}, count(w.up.empty() ? 1 : 2) {}
  [[nodiscard]] std::span<const Product<List>> all() const noexcept { return std::span(both).first(count); }
};

/// A row of gate = act(gate + bias) * (up + bias), and its codes if `quantized`.
template <Kernels K, class List>
void activate_row(const FeedForward<List>& f, MatrixView<float> gate, MatrixView<float> up,
                  const kernel::QuantizedRows& codes, bool quantized, std::size_t row) noexcept {
  const auto add = [row](const float* bias, MatrixView<float> to) {
    if (bias == nullptr) return;
    K::add(kernel::AddArgs{MatrixView<const float>(bias, to.rows(), to.cols(), 0), to, 1, row, row + 1});
  };
  add(f.weights.gate_bias, gate);
  if (!f.weights.up.empty()) add(f.weights.up_bias, up);
  if (f.sparsity != 0) keep_large(gate[row], f.sparsity);
  K::gated(kernel::GatedArgs{f.kind, gate, up, gate, row, row + 1});
  if (quantized) K::quantize(kernel::QuantizeArgs{gate, codes, row, row + 1});
}

/// gate_out = act(gate(x)) * up(x), or act(gate(x)), and its codes unless they are made later. The codes of x
/// may be in the memory of hidden_codes: they are not needed any more.
template <Kernels K, Executor E, class List>
void feed_forward_in(E& executor, const FeedForward<List>& f, const kernel::Input& x,
                     bool codes = true) noexcept {
  const GatedProducts<List> products(f.weights, f.gate_out, f.up_out);
  project<K>(executor, x, products.all());
  if (InputCodes{x.codes, x.codes.rows != 0, f.second_codes}.makes_second())
    project_second<K>(executor, x, products.all());
  const bool quantized = codes && wants_codes(f.hidden_codes, f.weights.down);
  executor.run(f.gate_out.rows(), [&](std::size_t row, std::size_t) noexcept {
    activate_row<K>(f, f.gate_out, f.up_out, f.hidden_codes, quantized, row);
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

/// The number of blocks of tokens by which feed_forward_of_tokens() divides n of them; 0: rows divide them.
/// The codes of x use the memory of the hidden codes, so that the hidden width is at least that of x.
template <class List>
[[nodiscard]] std::size_t feed_forward_blocks(const GatedWeights<List>& w, std::size_t n,
                                              std::size_t workers) noexcept {
  const std::size_t each = w.gate.rows() * w.gate.cols();
  return w.gate.rows() < w.gate.cols() ? 0 : token_blocks(n, (w.up.empty() ? 2 : 3) * each, workers);
}

/// y (+)= FFN(x) for tokens [tokens.begin, tokens.end), whose numbers stay in the core's cache between the
/// products. x.codes: the memory for the codes of x, which are made if `quantized`; a block makes them in the
/// memory of its hidden codes, which overwrite them later.
template <Kernels K, class List>
void feed_forward_of_tokens(const FeedForward<List>& f, const kernel::Input& x, bool quantized,
                            MatrixView<float> y, bool add, const exec::Range& tokens) noexcept {
  const std::size_t n = tokens.size();
  const auto own = [&](auto all) { return all.rows() == 0 ? all : all.rows(tokens.begin, n); };
  const auto values = own(x.values);
  const auto gate = own(f.gate_out), up = own(f.up_out);
  const kernel::QuantizedRows hidden = kernel::rows_of(f.hidden_codes, tokens.begin, n);
  const kernel::QuantizedRows codes{
      hidden.codes, hidden.scales, hidden.sums, n, x.codes.cols, kernel::fast8_from_of_parts(x.codes)};
  quantize_and_project_tokens<K>(values, InputCodes{codes, quantized, f.second_codes},
                                 GatedProducts<List>(f.weights, gate, up).all(), {0, n});
  const bool quantized_hidden = wants_codes(f.hidden_codes, f.weights.down);
  for (std::size_t row = 0; row < n; ++row) activate_row<K>(f, gate, up, hidden, quantized_hidden, row);
  project_slice<K>({gate, kernel::codes_if(quantized_hidden, hidden)},
                   Product<List>{f.weights.down, own(y), add, f.weights.down_bias}, 0, f.weights.down.rows());
}

}  // namespace mica::block
