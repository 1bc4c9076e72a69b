// SPDX-License-Identifier: Apache-2.0
//
// A view of rows of numbers: the form in which activations pass between rooms.
#pragma once

#include "mica/base/assert.hpp"

#include <cstddef>
#include <span>
#include <type_traits>

namespace mica {

/// A row-major view, (rows, cols), rows `stride` elements apart. Owns nothing, costs a copy of four words.
template <class T>
class MatrixView {
 public:
  constexpr MatrixView() noexcept = default;
  /// stride: elements from a row to the next, at least cols, which is the default; 0: all rows are one.
  constexpr MatrixView(T* data, std::size_t rows, std::size_t cols, std::size_t stride) noexcept
      : data_(data), rows_(rows), cols_(cols), stride_(stride) {}
  constexpr MatrixView(T* data, std::size_t rows, std::size_t cols) noexcept
      : MatrixView(data, rows, cols, cols) {}

  /// A view of mutable rows is also a view of constant rows.
  constexpr operator MatrixView<const T>() const noexcept requires(!std::is_const_v<T>) {
    return {data_, rows_, cols_, stride_};
  }

  /// In elements: row r begins at data() + r * stride().
  [[nodiscard]] constexpr T* data() const noexcept { return data_; }
  [[nodiscard]] constexpr std::size_t rows() const noexcept { return rows_; }
  [[nodiscard]] constexpr std::size_t cols() const noexcept { return cols_; }
  [[nodiscard]] constexpr std::size_t stride() const noexcept { return stride_; }

  /// A row, (cols). Requires row < rows(), which debug builds assert.
  [[nodiscard]] constexpr std::span<T> operator[](std::size_t row) const noexcept {
    MICA_ASSERT(row < rows_);
    return {data_ + row * stride_, cols_};
  }

  /// `count` rows from `first` on. Parts of a view of no memory, as plans have them, are such views too.
  [[nodiscard]] constexpr MatrixView rows(std::size_t first, std::size_t count) const noexcept {
    MICA_ASSERT(first + count <= rows_);
    return {at(first * stride_), count, cols_, stride_};
  }

  /// `count` columns from `first` on, of every row.
  [[nodiscard]] constexpr MatrixView cols(std::size_t first, std::size_t count) const noexcept {
    MICA_ASSERT(first + count <= cols_);
    return {at(first), rows_, count, stride_};
  }

 private:
  [[nodiscard]] constexpr T* at(std::size_t element) const noexcept {
    return data_ == nullptr ? nullptr : data_ + element;
  }

  T* data_ = nullptr;
  std::size_t rows_ = 0;
  std::size_t cols_ = 0;
  std::size_t stride_ = 0;
};

}  // namespace mica
