// SPDX-License-Identifier: Apache-2.0
//
// The two ways in which activations become the input of a product: normed first, or as they are. Rows are shared by the
// workers; codes are made only when a consumer wants them.
#pragma once

#include "mica/exec/concept.hpp"
#include "mica/kernel/concept.hpp"

#include <cstddef>

namespace mica::block {

/// normed = RMSNorm(x) * weight, and its codes.
template <Kernels K, Executor E>
kernel::Input norm(E& executor, MatrixView<const float> x, const float* weight, float epsilon,
                   MatrixView<float> normed, kernel::QuantizedRows codes, bool quantized) noexcept {
  executor.run(x.rows(), [&](std::size_t row, std::size_t) noexcept {
    K::rms_norm(kernel::RmsNormArgs{x, weight, epsilon, normed, row, row + 1});
    if (quantized) K::quantize(kernel::QuantizeArgs{normed, codes, row, row + 1});
  });
  return {normed, codes};
}

/// The codes of x.
template <Kernels K, Executor E>
kernel::Input quantize(E& executor, MatrixView<const float> x, kernel::QuantizedRows codes,
                       bool quantized) noexcept {
  if (quantized) {
    executor.run(x.rows(), [&](std::size_t row, std::size_t) noexcept {
      K::quantize(kernel::QuantizeArgs{x, codes, row, row + 1});
    });
  }
  return {x, codes};
}

}  // namespace mica::block
