// SPDX-License-Identifier: Apache-2.0
//
// A matrix of floats of 16 bits whose rows are coded (tensor/coded_panel.hpp): Matrix<Coded<F16>> beside Matrix<F16>, as
// Matrix<Packed<Q4_K>> stands beside Matrix<Q4_K>.
#pragma once

#include "mica/tensor/coded_panel.hpp"

#include <cstring>
#include <type_traits>

namespace mica::tensor {

/// Format F, coded: F to everybody who asks about blocks, as Packed<F> is.
template <CodableFormat F>
struct Coded : F {
  using File = F;
};
template <class F>
inline constexpr bool is_packed<Coded<F>> = true;
template <class F>
inline constexpr bool is_coded = false;
template <class F>
inline constexpr bool is_coded<Coded<F>> = true;

/// (rows, cols) weights: coded panels, then the rows that are left, in the layout of the file.
template <CodableFormat F>
class Matrix<Coded<F>> {
 public:
  using Format = Coded<F>;
  using Block = typename F::Block;

  constexpr Matrix() noexcept = default;
  Matrix(const Block* data, std::size_t rows, std::size_t cols) noexcept
      : data_(reinterpret_cast<const std::byte*>(data)), rows_(rows), cols_(cols) {
    MICA_ASSERT(CodedPanel::fits(cols));
  }

  [[nodiscard]] constexpr std::size_t rows() const noexcept { return rows_; }
  [[nodiscard]] constexpr std::size_t cols() const noexcept { return cols_; }
  [[nodiscard]] constexpr std::size_t blocks_per_row() const noexcept { return cols_; }
  [[nodiscard]] Block block(std::size_t r, std::size_t b) const noexcept {
    if (r >= packed_rows()) return tail().block(r - packed_rows(), b);
    return block_of(CodedPanel::bfloat(panel(r / CodedPanel::rows), cols_, r % CodedPanel::rows, b));
  }
  void decode_row(std::size_t r, float* values) const noexcept {
    if (r >= packed_rows()) return tail().decode_row(r - packed_rows(), values);
    const std::byte* const from = panel(r / CodedPanel::rows);
    const std::size_t row = r % CodedPanel::rows;
    for (std::size_t k = 0; k < cols_; ++k)
      values[k] = to_float(Bfloat{CodedPanel::listed(from, cols_, row, k)});
    const auto [begin, end] = CodedPanel::mends(from, row / CodedPanel::quad_rows);
    for (const auto* mend = begin; mend != end; ++mend) {
      if (mend->row() != row % CodedPanel::quad_rows) continue;
      const std::size_t k = mend->step() * CodedPanel::step + CodedPanel::value(mend->place());
      values[k] = to_float(Bfloat{CodedPanel::mended(CodedPanel::listed(from, cols_, row, k), *mend)});
    }
  }

  // Specific to coded matrices
  [[nodiscard]] constexpr std::size_t packed_rows() const noexcept {
    return rows_ - rows_ % CodedPanel::rows;
  }
  [[nodiscard]] constexpr const std::byte* panel(std::size_t p) const noexcept {
    return data_ + p * CodedPanel::bytes(cols_);
  }
  /// The rows from packed_rows() on.
  [[nodiscard]] Matrix<F> tail() const noexcept {
    const std::byte* const first = panel(packed_rows() / CodedPanel::rows);
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

/// Codes (rows, cols) weights, panel by panel; `to` has as many bytes and does not overlap `from`. False where some cannot be
/// coded; what lies at `to` is of no use then.
template <CodableFormat F>
[[nodiscard]] bool code(const Matrix<F>& from, std::byte* to) noexcept {
  std::size_t r = 0;
  for (; r + CodedPanel::rows <= from.rows(); r += CodedPanel::rows, to += CodedPanel::bytes(from.cols())) {
    if (!CodedPanel::code<F>(from.row(r), from.cols(), to)) return false;
  }
  if (r < from.rows())
    std::memcpy(to, from.row(r), (from.rows() - r) * from.cols() * sizeof(typename F::Block));
  return true;
}

}  // namespace mica::tensor
