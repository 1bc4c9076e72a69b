// SPDX-License-Identifier: Apache-2.0
//
// Tensors of a model as indices in the pager's table. Missing tensors of a layer are absent, not empty
// memory.
#pragma once

#include "mica/format/id.hpp"

#include <cstddef>
#include <cstdint>

namespace mica::block {

/// One tensor of a model, or some rows of one: its number in the pager's table, its format, its shape.
struct TensorRef {
  std::uint32_t index = 0;
  format::Info format = {};
  std::size_t rows = 0;  // 0: the model does not have it
  std::size_t cols = 0;
  std::size_t first_row = 0;  // of the tensor in the table

  [[nodiscard]] bool present() const noexcept { return rows != 0; }
  /// Where these rows begin in the tensor.
  [[nodiscard]] std::size_t byte_offset() const noexcept { return first_row * format.row_bytes(cols); }
  /// Rows [first, first + count) of these.
  [[nodiscard]] TensorRef slice(std::size_t first, std::size_t count) const noexcept {
    return {index, format, count, cols, first_row + first};
  }
};

/// A tensor with a matrix for each expert. Each has a number of its own in the table, one after the other.
struct ExpertsRef {
  TensorRef first;  // (rows, cols) of expert 0

  [[nodiscard]] bool present() const noexcept { return first.present(); }
  [[nodiscard]] TensorRef expert(std::size_t e) const noexcept {
    TensorRef ref = first;
    ref.index += static_cast<std::uint32_t>(e);
    return ref;
  }
};

}  // namespace mica::block
