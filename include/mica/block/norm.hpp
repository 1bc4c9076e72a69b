// SPDX-License-Identifier: Apache-2.0
//
// How activations become the input of a product, and how the output of a block is added to the residual
// stream. Workers share the rows; int8 codes are computed only when a product needs them.
#pragma once

#include "mica/block/norm_kind.hpp"
#include "mica/exec/concept.hpp"
#include "mica/kernel/concept.hpp"

#include <cstddef>

namespace mica::block {

/// normed = RMSNorm(x) * weight, and its codes. Without a weight it is the norm alone.
template <Kernels K, Executor E>
kernel::Input norm(E& executor, MatrixView<const float> x, const float* weight, float epsilon,
                   MatrixView<float> normed, kernel::QuantizedRows codes, bool quantized) noexcept {
  executor.run(x.rows(), [&](std::size_t row, std::size_t) noexcept {
    K::rms_norm(kernel::RmsNormArgs{x, weight, epsilon, normed, row, row + 1});
    if (quantized) K::quantize(kernel::QuantizeArgs{normed, codes, row, row + 1});
  });
  return {normed, kernel::codes_if(quantized, codes)};
}

/// normed = LayerNorm(x) * weight + bias, and its codes. The bias may be null.
template <Kernels K, Executor E>
kernel::Input layer_norm(E& executor, MatrixView<const float> x, const float* weight, const float* bias,
                         float epsilon, MatrixView<float> normed, kernel::QuantizedRows codes,
                         bool quantized) noexcept {
  executor.run(x.rows(), [&](std::size_t row, std::size_t) noexcept {
    K::layer_norm(kernel::LayerNormArgs{x, weight, bias, epsilon, normed, row, row + 1});
    if (quantized) K::quantize(kernel::QuantizeArgs{normed, codes, row, row + 1});
  });
  return {normed, kernel::codes_if(quantized, codes)};
}

/// The norm of this kind, of which RMSNorm has no bias.
template <Kernels K, Executor E>
kernel::Input norm_of_kind(E& executor, NormKind kind, MatrixView<const float> x, const float* weight,
                           const float* bias, float epsilon, MatrixView<float> normed,
                           kernel::QuantizedRows codes, bool quantized) noexcept {
  if (kind == NormKind::layer)
    return layer_norm<K>(executor, x, weight, bias, epsilon, normed, codes, quantized);
  return norm<K>(executor, x, weight, epsilon, normed, codes, quantized);
}

/// x and its codes, if they are needed.
template <Kernels K, Executor E>
kernel::Input quantize(E& executor, MatrixView<const float> x, kernel::QuantizedRows codes,
                       bool quantized) noexcept {
  if (quantized) {
    executor.run(x.rows(), [&](std::size_t row, std::size_t) noexcept {
      K::quantize(kernel::QuantizeArgs{x, codes, row, row + 1});
    });
  }
  return {x, kernel::codes_if(quantized, codes)};
}

/// The destination of a block's output: the residual stream, or scratch that is normed and scaled first.
struct Branch {
  MatrixView<float> residual;   // (n, width)
  MatrixView<float> scratch;    // (n, width)
  const float* norm = nullptr;  // (width): of the output, or null
  float epsilon = 0;            // of the norm
  float scale = 1;              // of the output, after the norm

  /// Whether the output is added as it is.
  [[nodiscard]] bool direct() const noexcept { return norm == nullptr && scale == 1; }
  /// The output of the last product of the block; it adds when the branch is direct.
  [[nodiscard]] MatrixView<float> target() const noexcept { return direct() ? residual : scratch; }
};

/// residual += scale * RMSNorm(scratch) * norm, unless the block has added already.
template <Kernels K, Executor E>
void join_branch(E& executor, const Branch& b) noexcept {
  if (b.direct()) return;
  executor.run(b.scratch.rows(), [&](std::size_t row, std::size_t) noexcept {
    if (b.norm != nullptr) {
      K::rms_norm(kernel::RmsNormArgs{b.scratch, b.norm, b.epsilon, b.scratch, row, row + 1});
    }
    K::add(kernel::AddArgs{b.scratch, b.residual, b.scale, row, row + 1});
  });
}

}  // namespace mica::block
