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
  using File = F;
};
template <class F>
inline constexpr bool is_packed<Packed12<F>> = true;
template <class F>
inline constexpr bool is_packed12 = false;
template <class F>
inline constexpr bool is_packed12<Packed12<F>> = true;

/// (rows, cols) weights: panels, then the rows that are left, in the layout of the file.
template <Packable12Format F>
class Matrix<Packed12<F>> {
 public:
  using Format = Packed12<F>;
  using Block = typename F::Block;

  constexpr Matrix() noexcept = default;
  Matrix(const Block* data, std::size_t rows, std::size_t cols) noexcept
      : data_(reinterpret_cast<const std::byte*>(data)), rows_(rows), cols_(cols) {
    MICA_ASSERT(Packed12Panel::fits(cols));
  }

  [[nodiscard]] constexpr std::size_t rows() const noexcept { return rows_; }
  [[nodiscard]] constexpr std::size_t cols() const noexcept { return cols_; }
  [[nodiscard]] constexpr std::size_t blocks_per_row() const noexcept { return cols_; }
  [[nodiscard]] Block block(std::size_t r, std::size_t b) const noexcept {
    if (r >= packed_rows()) return tail().block(r - packed_rows(), b);
    return block_of(Packed12Panel::bfloat(panel(r / Packed12Panel::rows), cols_, r % Packed12Panel::rows, b));
  }
  void decode_row(std::size_t r, float* values) const noexcept {
    if (r >= packed_rows()) return tail().decode_row(r - packed_rows(), values);
    const std::byte* const from = panel(r / Packed12Panel::rows);
    const std::size_t row = r % Packed12Panel::rows;
    for (std::size_t k = 0; k < cols_; ++k)
      values[k] = to_float(Bfloat{Packed12Panel::listed(from, cols_, row, k)});
    const auto [begin, end] = Packed12Panel::outliers(from, row / Packed12Panel::quad_rows);
    for (const auto* outlier = begin; outlier != end; ++outlier) {
      if (outlier->row() != row % Packed12Panel::quad_rows) continue;
      const std::size_t k = outlier->step() * Packed12Panel::step + Packed12Panel::value(outlier->place());
      values[k] =
          to_float(Bfloat{Packed12Panel::restored(Packed12Panel::listed(from, cols_, row, k), *outlier)});
    }
  }

  // Specific to packed matrices
  [[nodiscard]] constexpr std::size_t packed_rows() const noexcept {
    return rows_ - rows_ % Packed12Panel::rows;
  }
  [[nodiscard]] constexpr const std::byte* panel(std::size_t p) const noexcept {
    return data_ + p * Packed12Panel::bytes(cols_);
  }
  /// The rows from packed_rows() on.
  [[nodiscard]] Matrix<F> tail() const noexcept {
    const std::byte* const first = panel(packed_rows() / Packed12Panel::rows);
    return {reinterpret_cast<const Block*>(first), rows_ - packed_rows(), cols_};
  }

 private:
  [[nodiscard]] static Block block_of(Bfloat value) noexcept {
    if constexpr (std::is_same_v<Block, Half>) {
      return to_half(to_float(value));
    } else {
      return value;
    }
  }

  const std::byte* data_ = nullptr;
  std::size_t rows_ = 0;
  std::size_t cols_ = 0;
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
