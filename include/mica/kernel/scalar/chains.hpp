// SPDX-License-Identifier: Apache-2.0
//
// Specification: the float reduction of mica. Sixteen chains by index, then a tree.
#pragma once

#include "mica/kernel/matmul.hpp"

#include <cmath>

namespace mica::kernel::scalar {

/// Sixteen running sums.
struct Chains {
  float c[chains] = {};  // number k is in c[k % chains]

  /// Adds a * b, or a, which is number k.
  void fma(std::size_t k, float a, float b) noexcept { c[k % chains] = std::fma(a, b, c[k % chains]); }
  void add(std::size_t k, float a) noexcept { c[k % chains] += a; }

  /// The sum of all. Changes the sums.
  [[nodiscard]] float tree() noexcept {
    for (std::size_t half = chains / 2; half > 0; half /= 2) {
      for (std::size_t i = 0; i < half; ++i) c[i] += c[i + half];
    }
    return c[0];
  }
};

}  // namespace mica::kernel::scalar
