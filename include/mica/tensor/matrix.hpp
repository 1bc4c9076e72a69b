// SPDX-License-Identifier: Apache-2.0
//
// A weight matrix whose format is known to the compiler: rows of blocks that belong to a pager.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/format/concept.hpp"

#include <cstddef>

namespace mica::tensor {

/// (rows, cols) weights in format F; cols is a multiple of F::block_size, rows are adjacent.
template <WeightFormat F>
class Matrix {
 public:
  using Format = F;  // the tag, as visitors name it
  using Block = typename F::Block;

  constexpr Matrix() noexcept = default;
  /// data: rows * cols / F::block_size blocks, which outlive it.
  constexpr Matrix(const Block* data, std::size_t rows, std::size_t cols) noexcept
      : data_(data), rows_(rows), cols_(cols) {
    MICA_ASSERT(cols % F::block_size == 0);
  }

  /// In weights, and in blocks. Requires r < rows() and b < blocks_per_row(), which nothing checks.
  [[nodiscard]] constexpr std::size_t rows() const noexcept { return rows_; }
  [[nodiscard]] constexpr std::size_t cols() const noexcept { return cols_; }
  [[nodiscard]] constexpr std::size_t blocks_per_row() const noexcept { return cols_ / F::block_size; }
  [[nodiscard]] constexpr const Block* row(std::size_t r) const noexcept {
    return data_ + r * blocks_per_row();
  }
  [[nodiscard]] constexpr const Block& block(std::size_t r, std::size_t b) const noexcept {
    return row(r)[b];
  }

  /// Row r as floats, into cols() numbers.
  void decode_row(std::size_t r, float* values) const noexcept {
    const Block* block = row(r);
    for (std::size_t b = 0; b < blocks_per_row(); ++b) F::decode(block[b], values + b * F::block_size);
  }

 private:
  const Block* data_ = nullptr;
  std::size_t rows_ = 0;
  std::size_t cols_ = 0;
};

}  // namespace mica::tensor
