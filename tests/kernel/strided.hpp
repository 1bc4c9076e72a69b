// SPDX-License-Identifier: Apache-2.0
//
// Rows with other numbers between them, the last row right before memory that may not be touched.

#pragma once

#include "kernel/guarded.hpp"

namespace mica::test {

/// (rows, cols) of noise, `gap` numbers between rows; gaps are compared too, so that a kernel that writes
/// there is seen.
struct Strided {
  Guarded<float> numbers;
  std::size_t rows, cols, stride;

  Strided(std::size_t n, std::size_t width, std::size_t gap, CounterRng& rng, float size = 1)
      : numbers(n == 0 ? 0 : (n - 1) * (width + gap) + width), rows(n), cols(width), stride(width + gap) {
    fill_noise(numbers, rng, size);
  }
  /// The same numbers once more.
  Strided(Strided& other)
      : numbers(other.numbers.size()), rows(other.rows), cols(other.cols), stride(other.stride) {
    std::copy(other.numbers.begin(), other.numbers.end(), numbers.begin());
  }

  [[nodiscard]] MatrixView<float> view() { return {numbers.data(), rows, cols, stride}; }
  [[nodiscard]] float& at(std::size_t r, std::size_t c) { return numbers[r * stride + c]; }
};

/// How many numbers differ, gaps included.
inline std::size_t differences(const Strided& a, const Strided& b) {
  return differences(a.numbers.data(), b.numbers.data(), a.numbers.size());
}

}  // namespace mica::test
