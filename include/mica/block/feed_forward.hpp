// SPDX-License-Identifier: Apache-2.0
//
// The gated feed-forward block: down(silu(gate(x)) * up(x)), added to the residual stream.
#pragma once

#include "mica/block/linear.hpp"
#include "mica/block/norm.hpp"

namespace mica::block {

/// Weights and scratch of one feed-forward block for n tokens.
template <class List>
struct FeedForward {
  tensor::AnyMatrix<List> gate;        // (ff_width, width)
  tensor::AnyMatrix<List> up;          // (ff_width, width)
  tensor::AnyMatrix<List> down;        // (width, ff_width)
  MatrixView<float> gate_out;          // (n, ff_width)
  MatrixView<float> up_out;            // (n, ff_width)
  kernel::QuantizedRows hidden_codes;  // (n, ff_width)
};

/// residual += FFN(x); x is normed. The codes of x may lie where hidden_codes lie: they are done with by then.
template <Kernels K, Executor E, class List>
void feed_forward(E& executor, const FeedForward<List>& f, const kernel::Input& x,
                  MatrixView<float> residual) noexcept {
  project<K>(executor, x, std::array{Product<List>{f.gate, f.gate_out}, Product<List>{f.up, f.up_out}});
  const bool quantized = wants_codes(f.down);
  executor.run(f.gate_out.rows(), [&](std::size_t row, std::size_t) noexcept {
    K::gated(kernel::GatedArgs{kernel::Gate::silu, f.gate_out, f.up_out, f.gate_out, row, row + 1});
    if (quantized) K::quantize(kernel::QuantizeArgs{f.gate_out, f.hidden_codes, row, row + 1});
  });
  project<K>(executor, kernel::Input{f.gate_out, f.hidden_codes},
             std::array{Product<List>{f.down, residual, true}});
}

}  // namespace mica::block
