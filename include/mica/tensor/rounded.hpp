// SPDX-License-Identifier: Apache-2.0
//
// Rows in eight bits with one scale for 256 values, rounded while they are loaded, for models whose products
// all follow kernel/fast8.hpp: Matrix<Rounded<Q8_0>> beside Matrix<Packed<Q8_0>>. Codes lie where Rows16 puts
// those of the format, and scales begin where it puts the scales of the format:
//
//   stretch:  | line 0 | line 1 | ... | d of rows 0..15, floats | unused |    a line: code + 128 of four
//                                                                             values of 16 rows
//
// Only in memory: no file has it. Rows beyond the last whole panel keep the layout of the file.
#pragma once

#include "mica/tensor/packed.hpp"

#include <cstring>
#include <type_traits>

namespace mica::tensor {

/// A format whose rows have room: 32 codes of one byte in a block, and a scale.
template <class F>
concept RoundedLayout = PackableFormat<F> && !is_packed<F> && F::block_size == 32 && F::code_bytes == 32 &&
                        Rows16::stretch<F>() == 8;

/// A format that says of itself that models may round it: kernels are compiled for it.
template <class F>
concept RoundableFormat = RoundedLayout<F> && requires {
  requires std::is_same_v<typename F::Roundable, F>;
};

/// Format F, rounded. Its id is in no file.
template <RoundedLayout F>
struct Rounded : F {
  using File = F;  // the format of the file
  static constexpr format::Id id{0x80000000 | F::id.value};
};

template <class F>
inline constexpr bool is_packed<Rounded<F>> = true;
template <class F>
inline constexpr bool is_rounded = false;
template <class F>
inline constexpr bool is_rounded<Rounded<F>> = true;

/// The values that share a scale.
inline constexpr std::size_t rounded_values = 256;

/// The values from number 256 * chunk of a row on; codes behind the end of the row are 0.
struct RoundedBlock {
  float d;
  std::int8_t code[rounded_values];
};

/// Where the parts of a chunk of sixteen rows lie, in bytes from the beginning of the panel.
template <RoundedLayout F>
[[nodiscard]] constexpr Rows16::Place rounded_place(std::size_t cols, std::size_t chunk) noexcept {
  return Rows16::place<F>(cols / F::block_size, chunk * rounded_values / F::block_size);
}

/// Four codes with 128 added to each, or taken away: both are the same operation.
[[nodiscard]] inline std::uint32_t rounded_word(const void* codes) noexcept {
  std::uint32_t word;
  std::memcpy(&word, codes, 4);
  return word ^ 0x80808080;
}

/// Row r < 16 of a panel becomes `block`.
template <RoundedLayout F>
void store_rounded(const RoundedBlock& block, std::size_t cols, std::size_t r, std::size_t chunk,
                   std::byte* panel) noexcept {
  const Rows16::Place to = rounded_place<F>(cols, chunk);
  const std::size_t n = std::min(rounded_values, cols - chunk * rounded_values);
  for (std::size_t k = 0; k < n; k += 4) {
    const std::uint32_t word = rounded_word(block.code + k);
    std::memcpy(panel + to.codes + (k / 4 * Rows16::rows + r) * 4, &word, 4);
  }
  std::memcpy(panel + to.scales + r * sizeof(float), &block.d, sizeof(float));
}

/// A matrix whose rows are rounded, sixteen at a time. Widths are a multiple of 64.
template <RoundedLayout F>
class Matrix<Rounded<F>> : public detail::PanelMatrix<F, Rows16::panel_bytes<F>> {
 public:
  using Format = Rounded<F>;  // the tag, as visitors name it
  using Matrix::PanelMatrix::PanelMatrix;

  /// Row r < packed_rows().
  [[nodiscard]] RoundedBlock rounded(std::size_t r, std::size_t chunk) const noexcept {
    const std::byte* const panel = this->panel(r / Rows16::rows);
    const Rows16::Place from = rounded_place<F>(this->cols(), chunk);
    RoundedBlock block{};
    const std::size_t row = r % Rows16::rows,
                      n = std::min(rounded_values, this->cols() - chunk * rounded_values);
    for (std::size_t k = 0; k < n; k += 4) {
      const std::uint32_t word = rounded_word(panel + from.codes + (k / 4 * Rows16::rows + row) * 4);
      std::memcpy(block.code + k, &word, 4);
    }
    std::memcpy(&block.d, panel + from.scales + row * sizeof(float), sizeof(float));
    return block;
  }
  void decode_row(std::size_t r, float* values) const noexcept {
    if (r >= this->packed_rows()) return this->tail().decode_row(r - this->packed_rows(), values);
    for (std::size_t k = 0; k < this->cols(); k += rounded_values) {
      const RoundedBlock block = rounded(r, k / rounded_values);
      for (std::size_t i = 0; i < rounded_values && k + i < this->cols(); ++i)
        values[k + i] = block.d * static_cast<float>(block.code[i]);
    }
  }
};

}  // namespace mica::tensor
