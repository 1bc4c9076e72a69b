// SPDX-License-Identifier: Apache-2.0
//
// Floats of 16 bits in twelve, where nothing is lost by it. As BF16, which F16 weights can be written as when
// their model was published in BF16, few high bytes occur: sign and exponent of the weights of some rows,
// eight powers of four and their negatives. A panel lists the sixteen that occur most; a weight is its low
// byte and a code of four bits. Weights whose high byte is not listed, about one in ten thousand, are
// outliers, which have a list of their own. With 16 rows of k values,
//
//   panel:    | header | outliers | quad 0 | quad 1 | quad 2 | quad 3 |  header and outliers fill whole steps
//   header:   | sixteen high bytes | where the outliers of each quad end: 4 x 4 bytes | unused |
//   outlier:  step << 16 | row << 14 | place << 8 | high byte       4 bytes, in order, those of quad 0 first
//   quad:     | step | step | ... |                                    four rows; a step is 64 values
//   step:     | low bytes of row 0 | 1 | 2 | 3 | codes of rows 0 and 1 | of rows 2 and 3 |     64 bytes each
//
// The bytes of a row of a step lie as vectors unpack them. Whether rows can be packed is known when they are
// read; packed, they never take more bytes than in the file.
#pragma once

#include "mica/base/bits.hpp"
#include "mica/base/half.hpp"
#include "mica/format/tiling.hpp"
#include "mica/tensor/packed.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace mica {

/// A format of single floats of 16 bits: rows of it can be packed in twelve, if their numbers allow it.
template <class F>
concept Packable12Format = WeightFormat<F> &&(F::block_size == 1) && !tensor::is_packed<F> &&
                           (std::is_same_v<typename F::Block, Half> ||
                            std::is_same_v<typename F::Block, Bfloat>);

namespace tensor {

/// The bits of the same number as BF16; false when there is none, and for what is not finite.
[[nodiscard]] constexpr bool exact_bfloat(Half value, std::uint16_t& same) noexcept {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(to_float(value));
  same = static_cast<std::uint16_t>(bits >> 16);
  return (bits & 0xFFFF) == 0 && (value.bits & 0x7C00) != 0x7C00;
}

namespace detail {

/// Columns of a row of a step.
using StepPlaces = format::Tiling<1, format::Columns<4, 4>, format::Columns<2, 32>, format::Columns<4>,
                                  format::Columns<2, 16>>;
inline constexpr std::array<std::uint8_t, StepPlaces::size()> step_values = [] {
  std::array<std::uint8_t, StepPlaces::size()> values{};
  for (std::size_t k = 0; k < values.size(); ++k)
    values[StepPlaces::place(0, k)] = static_cast<std::uint8_t>(k);
  return values;
}();

}  // namespace detail

/// Where the parts of a panel of 16 rows lie, and what they say.
struct Packed12Panel {
  static constexpr std::size_t rows = 16;
  static constexpr std::size_t quad_rows = 4;
  static constexpr std::size_t quads = rows / quad_rows;
  static constexpr std::size_t step = 64;  // values
  static constexpr std::size_t step_bytes = (quad_rows + quad_rows / 2) * step;
  static constexpr std::size_t codes_at = quad_rows * step;  // in a step
  static constexpr std::size_t head_bytes = 64;
  static constexpr std::size_t max_cols = std::size_t{1} << 22;  // steps are counted in 16 bits

  struct Head {
    std::uint8_t high[16];
    std::uint32_t end[quads];
    std::uint8_t unused[32];
  };
  static_assert(sizeof(Head) == head_bytes);

  [[nodiscard]] static constexpr bool fits(std::size_t cols) noexcept {
    return cols != 0 && cols % step == 0 && cols <= max_cols;
  }
  /// Steps whose bytes the header and the outliers take: one outlier in 512 weights, and what is left of the
  /// last step.
  [[nodiscard]] static constexpr std::size_t head_steps(std::size_t cols) noexcept {
    return ceil_div(head_bytes + rows * cols / 512 * sizeof(std::uint32_t), step_bytes);
  }
  /// Outliers of a panel at most; with more it is not worth packing.
  [[nodiscard]] static constexpr std::size_t max_outliers(std::size_t cols) noexcept {
    return (head_steps(cols) * step_bytes - head_bytes) / sizeof(std::uint32_t);
  }
  /// Where a quad begins in a panel, in steps; quad_steps(cols, quads) is all of it.
  [[nodiscard]] static constexpr std::size_t quad_steps(std::size_t cols, std::size_t quad) noexcept {
    return head_steps(cols) + quad * (cols / step);
  }
  [[nodiscard]] static constexpr std::size_t quad_at(std::size_t cols, std::size_t quad) noexcept {
    return quad_steps(cols, quad) * step_bytes;
  }
  [[nodiscard]] static constexpr std::size_t bytes(std::size_t cols) noexcept { return quad_at(cols, quads); }

  /// Where value k of a step lies among its row's 64 bytes, and the way back.
  [[nodiscard]] static constexpr std::size_t place(std::size_t k) noexcept {
    return detail::StepPlaces::place(0, k);
  }
  [[nodiscard]] static constexpr std::size_t value(std::size_t place) noexcept {
    return detail::step_values[place];
  }

  /// A weight whose high byte is not in the list.
  struct Outlier {
    std::uint32_t bits;

    static constexpr Outlier of(std::size_t step, std::size_t row, std::size_t place,
                                std::uint8_t high) noexcept {
      return {static_cast<std::uint32_t>(step << 16 | row << 14 | place << 8 | high)};
    }
    [[nodiscard]] constexpr std::size_t step() const noexcept { return bits >> 16; }
    [[nodiscard]] constexpr std::size_t row() const noexcept { return bits >> 14 & 3; }  // of the quad
    [[nodiscard]] constexpr std::size_t place() const noexcept { return bits >> 8 & 63; }
    [[nodiscard]] constexpr std::uint8_t high() const noexcept { return bits & 255; }
  };

  /// A weight with the high byte that its outlier has.
  [[nodiscard]] static constexpr std::uint16_t restored(std::uint16_t bits, const Outlier& outlier) noexcept {
    return static_cast<std::uint16_t>(outlier.high() << 8 | (bits & 255));
  }

  struct Outliers {
    const Outlier* begin;
    const Outlier* end;
  };
  /// The outliers of a quad.
  [[nodiscard]] static Outliers outliers(const std::byte* panel, std::size_t quad) noexcept {
    const Head& head = *reinterpret_cast<const Head*>(panel);
    const auto* const all = reinterpret_cast<const Outlier*>(panel + head_bytes);
    return {all + (quad == 0 ? 0 : head.end[quad - 1]), all + head.end[quad]};
  }
  /// Those of its steps [first, last).
  [[nodiscard]] static Outliers outliers(const std::byte* panel, std::size_t quad, std::size_t first,
                                         std::size_t last) noexcept {
    const auto [begin, end] = outliers(panel, quad);
    const auto before = [](const Outlier& outlier, std::size_t n) { return outlier.step() < n; };
    const Outlier* const from = std::lower_bound(begin, end, first, before);
    return {from, std::lower_bound(from, end, last, before)};
  }

  /// Value k of a row, by the list alone.
  [[nodiscard]] static std::uint16_t listed(const std::byte* panel, std::size_t cols, std::size_t row,
                                            std::size_t k) noexcept {
    const auto* const at =
        reinterpret_cast<const std::uint8_t*>(panel) + quad_at(cols, row / quad_rows) + k / step * step_bytes;
    const std::size_t r = row % quad_rows, i = place(k % step);
    const int code = at[codes_at + r / 2 * step + i] >> 4 * (r % 2) & 15;
    return static_cast<std::uint16_t>(reinterpret_cast<const Head*>(panel)->high[code] << 8 |
                                      at[r * step + i]);
  }
  /// Value k of a row.
  [[nodiscard]] static Bfloat bfloat(const std::byte* panel, std::size_t cols, std::size_t row,
                                     std::size_t k) noexcept {
    std::uint16_t bits = listed(panel, cols, row, k);
    const auto [begin, end] = outliers(panel, row / quad_rows, k / step, k / step + 1);
    for (const Outlier* outlier = begin; outlier != end; ++outlier) {
      if (outlier->row() == row % quad_rows && outlier->place() == place(k % step))
        bits = restored(bits, *outlier);
    }
    return {bits};
  }

  /// Packs 16 rows of `cols` values, which fit; false where that loses something or takes too many outliers.
  template <Packable12Format F>
  [[nodiscard]] static bool pack(const typename F::Block* first, std::size_t cols,
                                 std::byte* panel) noexcept {
    Head head{};
    Codes codes;
    if (!list(first, cols, head, codes)) return false;
    auto* const outliers = reinterpret_cast<Outlier*>(panel + head_bytes);
    auto* at = reinterpret_cast<std::uint8_t*>(panel) + quad_at(cols, 0);
    std::uint32_t n = 0;
    Bits bits[quad_rows];
    for (std::size_t quad = 0; quad < quads; ++quad, first += quad_rows * cols) {
      for (std::size_t s = 0; s < cols / step; ++s, at += step_bytes) {
        for (std::size_t r = 0; r < quad_rows; ++r) {
          if (!to_bfloats(first + r * cols + s * step, bits[r])) return false;
        }
        bool listed = true;
        for (std::size_t r = 0; r < quad_rows; r += 2)
          listed &= pack_step(bits[r], bits[r + 1], codes, at + r * step, at + (r + 1) * step,
                              at + codes_at + r / 2 * step);
        for (std::size_t i = 0; !listed && i < quad_rows * step; ++i) {
          const auto high = static_cast<std::uint8_t>(bits[i / step][value(i % step)] >> 8);
          if (codes[high] != no_code) continue;
          if (n == max_outliers(cols)) return false;
          outliers[n++] = Outlier::of(s, i / step, i % step, high);
        }
      }
      head.end[quad] = n;
    }
    std::memset(outliers + n, 0, (max_outliers(cols) - n) * sizeof(Outlier));
    std::memcpy(panel, &head, sizeof(head));
    return true;
  }

 private:
  using Bits = std::uint16_t[step];
  using Codes = std::array<std::uint8_t, 256>;  // by high byte
  static constexpr std::uint8_t no_code = 16;

  /// 64 values of a row as bfloats; false where one is none.
  [[nodiscard]] static bool to_bfloats(const Bfloat* from, Bits& to) noexcept {
    std::memcpy(to, from, sizeof(to));
    return true;
  }
  [[nodiscard]] static bool to_bfloats(const Half* from, Bits& to) noexcept {
    std::uint16_t normal = 1, lost = 0;
    for (std::size_t i = 0; i < step; ++i) {  // as if all were normal numbers
      const std::uint16_t bits = from[i].bits, magnitude = bits & 0x7FFF;
      normal = static_cast<std::uint16_t>(normal & static_cast<int>(magnitude >= 0x400) &
                                          static_cast<int>(magnitude < 0x7C00));
      const int of_normal = magnitude >= 0x400 ? 7 : 0;
      lost = static_cast<std::uint16_t>(lost | (bits & of_normal));
      to[i] = static_cast<std::uint16_t>((bits & 0x8000) | ((magnitude >> 3) + (112 << 7)));
    }
    for (std::size_t i = 0; normal == 0 && i < step; ++i) {
      const int exponent = from[i].bits >> 10 & 31;
      if (exponent != 0 && exponent != 31) continue;
      if (!exact_bfloat(from[i], to[i])) return false;
    }
    return lost == 0;
  }
  /// The sixteen high bytes that occur most, as every fourth step tells. Small weights of a bell are a quarter
  /// as many as those four times as large, which counts where few are met.
  template <class T>
  [[nodiscard]] static bool list(const T* first, std::size_t cols, Head& head, Codes& codes) noexcept {
    std::uint32_t counts[4][256] = {};
    Bits bits;
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t k = 0; k < cols; k += 4 * step) {
        if (!to_bfloats(first + r * cols + k, bits)) return false;
        for (std::size_t i = 0; i < step; ++i) ++counts[i % 4][bits[i] >> 8];
      }
    }
    std::array<std::uint64_t, 257> count{};
    for (std::size_t i = 0; i < 256; ++i)
      count[i] = std::uint64_t{counts[0][i]} + counts[1][i] + counts[2][i] + counts[3][i];
    std::array<std::uint8_t, 256> order;
    for (std::size_t i = 0; i < 256; ++i) order[i] = static_cast<std::uint8_t>(i);
    const auto weight = [&](std::uint8_t high) { return 8 * count[high] + count[high + 1]; };
    std::partial_sort(order.begin(), order.begin() + 16, order.end(), [&](std::uint8_t a, std::uint8_t b) {
      return weight(a) != weight(b) ? weight(a) > weight(b) : a < b;
    });
    codes.fill(no_code);
    for (std::uint8_t i = 0; i < 16; ++i) {
      head.high[i] = order[i];
      codes[order[i]] = i;
    }
    return true;
  }
  /// Packs a step of two rows; whether all high bytes are in the list.
  [[nodiscard]] static bool pack_step(const Bits& even, const Bits& odd, const Codes& codes,
                                      std::uint8_t* even_low, std::uint8_t* odd_low,
                                      std::uint8_t* both) noexcept {
    std::uint32_t unlisted = 0;
    for (std::size_t i = 0; i < step; ++i) {
      const std::uint32_t a = even[value(i)], b = odd[value(i)];
      even_low[i] = static_cast<std::uint8_t>(a);
      odd_low[i] = static_cast<std::uint8_t>(b);
      const std::uint32_t code_a = codes[a >> 8], code_b = codes[b >> 8];
      unlisted |= code_a | code_b;
      both[i] = static_cast<std::uint8_t>((code_a & 15) | code_b << 4);
    }
    return (unlisted & no_code) == 0;
  }
};

}  // namespace tensor
}  // namespace mica
