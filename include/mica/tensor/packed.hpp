// SPDX-License-Identifier: Apache-2.0
//
// A matrix whose rows are packed: Matrix<Packed<Q4_K>> beside Matrix<Q4_K>. The blocks of Packed<F> are those
// of F; they lie elsewhere.
#pragma once

#include "mica/tensor/detail/rows16.hpp"
#include "mica/tensor/matrix.hpp"

namespace mica::tensor {

/// Format F in panels of Rows16.
template <PackableFormat F>
struct Packed : F {
  using File = F;  // the format in files
};

/// Whether F is Packed or Packed12.
template <class F>
inline constexpr bool is_packed = false;
template <class F>
inline constexpr bool is_packed<Packed<F>> = true;

namespace detail {

/// (rows, cols) weights: panels of 16 rows, then the rows that are left, in the layout of the file.
/// panel_bytes(cols): those of a panel.
template <class F, auto panel_bytes>
class PanelMatrix {
 public:
  using Block = typename F::Block;

  constexpr PanelMatrix() noexcept = default;
  PanelMatrix(const Block* data, std::size_t rows, std::size_t cols) noexcept
      : data_(reinterpret_cast<const std::byte*>(data)), rows_(rows), cols_(cols) {
    MICA_ASSERT(cols % F::block_size == 0);
  }

  [[nodiscard]] constexpr std::size_t rows() const noexcept { return rows_; }
  [[nodiscard]] constexpr std::size_t cols() const noexcept { return cols_; }
  [[nodiscard]] constexpr std::size_t blocks_per_row() const noexcept { return cols_ / F::block_size; }

  // Specific to packed matrices
  [[nodiscard]] constexpr std::size_t packed_rows() const noexcept { return rows_ - rows_ % Rows16::rows; }
  [[nodiscard]] constexpr const std::byte* panel(std::size_t p) const noexcept {
    return data_ + p * panel_bytes(cols_);
  }
  /// The rows from packed_rows() on.
  [[nodiscard]] Matrix<F> tail() const noexcept {
    const std::byte* const first = panel(packed_rows() / Rows16::rows);
    return {reinterpret_cast<const Block*>(first), rows_ - packed_rows(), cols_};
  }

 private:
  const std::byte* data_ = nullptr;
  std::size_t rows_ = 0;
  std::size_t cols_ = 0;
};

}  // namespace detail

/// A matrix whose rows are packed sixteen at a time.
template <PackableFormat F>
class Matrix<Packed<F>> : public detail::PanelMatrix<F, Rows16::panel_bytes<F>> {
 public:
  using Format = Packed<F>;  // the tag, as visitors name it
  using Matrix::PanelMatrix::PanelMatrix;
  using typename Matrix::PanelMatrix::Block;

  /// As in the file: a block is put together from its panel, and copied.
  [[nodiscard]] Block block(std::size_t r, std::size_t b) const noexcept {
    if (r >= this->packed_rows()) return this->tail().block(r - this->packed_rows(), b);
    return Rows16::block<F>(this->panel(r / Rows16::rows), this->blocks_per_row(), r % Rows16::rows, b);
  }
  void decode_row(std::size_t r, float* values) const noexcept {
    for (std::size_t b = 0; b < this->blocks_per_row(); ++b)
      F::decode(block(r, b), values + b * F::block_size);
  }
};

/// Packs (rows, cols) weights, panel by panel; `to` has as many bytes and does not overlap `from`.
template <PackableFormat F>
void pack(const Matrix<F>& from, std::byte* to) noexcept {
  const std::size_t n = from.blocks_per_row(), row_bytes = n * sizeof(typename F::Block);
  std::size_t r = 0;
  for (; r + Rows16::rows <= from.rows(); r += Rows16::rows)
    Rows16::pack<F>(from.row(r), n, to + r * row_bytes);
  if (r < from.rows()) std::memcpy(to + r * row_bytes, from.row(r), (from.rows() - r) * row_bytes);
}

}  // namespace mica::tensor
