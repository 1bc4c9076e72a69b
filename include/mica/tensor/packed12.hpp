// SPDX-License-Identifier: Apache-2.0
//
// A matrix of floats of 16 bits whose rows are packed in twelve (tensor/detail/packed12_panel.hpp):
// Matrix<Packed12<F16>> beside Matrix<F16>, as Matrix<Packed<Q4_K>> stands beside Matrix<Q4_K>.
#pragma once

#include "mica/tensor/detail/packed12_panel.hpp"

#include <cstring>
#include <type_traits>

namespace mica::tensor {

/// Format F, packed in twelve bits: its blocks are those of F, as with Packed<F>.
template <Packable12Format F>
struct Packed12 : F {
  using File = F;  // the format in files
};
/// Whether F is packed, and whether in twelve bits.
template <class F>
inline constexpr bool is_packed<Packed12<F>> = true;
template <class F>
inline constexpr bool is_packed12 = false;
template <class F>
inline constexpr bool is_packed12<Packed12<F>> = true;

static_assert(Packed12Panel::rows == Rows16::rows);  // by which detail::PanelMatrix counts

/// (rows, cols) weights; Packed12Panel::fits(cols).
template <Packable12Format F>
class Matrix<Packed12<F>> : public detail::PanelMatrix<F, Packed12Panel::bytes> {
 public:
  using Format = Packed12<F>;  // the tag, as visitors name it
  using typename Matrix::PanelMatrix::Block;

  constexpr Matrix() noexcept = default;
  /// data: packed12_bytes(rows, cols) bytes (tensor/packing.hpp), which outlive it.
  Matrix(const Block* data, std::size_t rows, std::size_t cols) noexcept
      : Matrix::PanelMatrix(data, rows, cols) {
    MICA_ASSERT(Packed12Panel::fits(cols));
  }

  /// As in the file: outliers have all of their bits.
  [[nodiscard]] Block block(std::size_t r, std::size_t b) const noexcept {
    if (r >= this->packed_rows()) return this->tail().block(r - this->packed_rows(), b);
    const Bfloat value =
        Packed12Panel::bfloat(this->panel(r / Packed12Panel::rows), this->cols(), r % Packed12Panel::rows, b);
    if constexpr (std::is_same_v<Block, Half>) {
      return to_half(to_float(value));
    } else {
      return value;
    }
  }
  void decode_row(std::size_t r, float* values) const noexcept {
    if (r >= this->packed_rows()) return this->tail().decode_row(r - this->packed_rows(), values);
    const std::byte* const from = this->panel(r / Packed12Panel::rows);
    const std::size_t row = r % Packed12Panel::rows;
    const auto listed = [&](std::size_t k) { return Packed12Panel::listed(from, this->cols(), row, k); };
    for (std::size_t k = 0; k < this->cols(); ++k) values[k] = to_float(Bfloat{listed(k)});
    const auto [begin, end] = Packed12Panel::outliers(from, row / Packed12Panel::quad_rows);
    for (const auto* outlier = begin; outlier != end; ++outlier) {
      if (outlier->row() != row % Packed12Panel::quad_rows) continue;
      const std::size_t k = outlier->step() * Packed12Panel::step + Packed12Panel::value(outlier->place());
      values[k] = to_float(Bfloat{Packed12Panel::restored(listed(k), *outlier)});
    }
  }
};

/// Packs (rows, cols) weights, panel by panel; `to` has as many bytes and does not overlap `from`. False
/// where some cannot be packed; what lies at `to` is of no use then.
template <Packable12Format F>
[[nodiscard]] bool pack12(const Matrix<F>& from, std::byte* to) noexcept {
  std::size_t r = 0;
  for (; r + Packed12Panel::rows <= from.rows();
       r += Packed12Panel::rows, to += Packed12Panel::bytes(from.cols())) {
    if (!Packed12Panel::pack<F>(from.row(r), from.cols(), to)) return false;
  }
  if (r < from.rows())
    std::memcpy(to, from.row(r), (from.rows() - r) * from.cols() * sizeof(typename F::Block));
  return true;
}

}  // namespace mica::tensor
