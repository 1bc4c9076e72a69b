// SPDX-License-Identifier: Apache-2.0
//
// In which order the numbers of some rows and columns lie in memory: a list of digits of row and column, from
// the one that changes least often to the one that changes from each number to the next.
//
//   Tiling<16, Columns<0, 4>, Rows<>, Columns<4>>      four neighbouring columns of each of sixteen rows
//
// Packing, unpacking and sizes follow from it; tests/tensor/layouts_test.cpp checks them by one property. So do
// the functions of elements whose keys and values differ in their tilings alone.
#pragma once

#include "mica/base/bits.hpp"

#include <cstddef>

namespace mica::format {

/// The digit index / step % n of a row or column; n = 0 stands for all that step leaves: index / step.
template <bool of_columns, std::size_t n, std::size_t step>
struct Digit {
  /// The values that the digit has in a tile, and its value at one place.
  [[nodiscard]] static constexpr std::size_t count(std::size_t rows, std::size_t columns) noexcept {
    return n != 0 ? n : ceil_div(of_columns ? columns : rows, step);
  }
  [[nodiscard]] static constexpr std::size_t of(std::size_t row, std::size_t column) noexcept {
    const std::size_t all = (of_columns ? column : row) / step;
    return n != 0 ? all % n : all;
  }
};
/// Digits of the row, and of the column.
template <std::size_t n = 0, std::size_t step = 1>
using Rows = Digit<false, n, step>;
template <std::size_t n = 0, std::size_t step = 1>
using Columns = Digit<true, n, step>;

/// `columns` may be left out of places where the digit with all columns comes first.
template <std::size_t rows, class... Digits>
struct Tiling {
  /// Numbers of a tile, with those that fill it up.
  [[nodiscard]] static constexpr std::size_t size(std::size_t columns = 0) noexcept {
    return (Digits::count(rows, columns) * ...);
  }
  /// Numbers before that of a row and column.
  [[nodiscard]] static constexpr std::size_t place(std::size_t row, std::size_t column,
                                                   std::size_t columns = 0) noexcept {
    std::size_t place = 0;
    ((place = place * Digits::count(rows, columns) + Digits::of(row, column)), ...);
    return place;
  }
};

/// Codes that share bytes, which lie as Bytes says. InByte counts the codes of a byte from its low bits on.
template <class Bytes, class InByte>
struct CodeTiling : Bytes {
  static constexpr int bits = 8 / static_cast<int>(InByte::count(0, 0));  // of a code
  static constexpr int max = (1 << bits) - 1;                             // the largest code

  /// Reads a code of a tile, and replaces one.
  [[nodiscard]] static int get(const std::byte* tile, std::size_t row, std::size_t column) noexcept {
    return std::to_integer<int>(tile[Bytes::place(row, column)]) >> shift(row, column) & max;
  }
  static void set(std::byte* tile, std::size_t row, std::size_t column, int code) noexcept {
    std::byte& byte = tile[Bytes::place(row, column)];
    byte &= static_cast<std::byte>(~(max << shift(row, column)));
    byte |= static_cast<std::byte>(code << shift(row, column));
  }

 private:
  [[nodiscard]] static constexpr int shift(std::size_t row, std::size_t column) noexcept {
    return static_cast<int>(InByte::of(row, column)) * bits;
  }
};

namespace detail {

/// The functions of a KvElement for keys and for values, from one template each over the part: its tiling. E has
/// tilings Keys and Values, and for a Part that is one of them tile_bytes<Part>(head_dim),
/// store<Part>(tile, slot, head_dim, head) and load<Part>(tile, slot, head_dim, out).
template <class E>
struct KvParts {
  static std::size_t key_tile_bytes(std::size_t head_dim) noexcept {
    return E::template tile_bytes<typename E::Keys>(head_dim);
  }
  static std::size_t value_tile_bytes(std::size_t head_dim) noexcept {
    return E::template tile_bytes<typename E::Values>(head_dim);
  }
  static void store_key(std::byte* tile, std::size_t slot, std::size_t head_dim, const float* head) noexcept {
    E::template store<typename E::Keys>(tile, slot, head_dim, head);
  }
  static void store_value(std::byte* tile, std::size_t slot, std::size_t head_dim,
                          const float* head) noexcept {
    E::template store<typename E::Values>(tile, slot, head_dim, head);
  }
  static void load_key(const std::byte* tile, std::size_t slot, std::size_t head_dim, float* out) noexcept {
    E::template load<typename E::Keys>(tile, slot, head_dim, out);
  }
  static void load_value(const std::byte* tile, std::size_t slot, std::size_t head_dim, float* out) noexcept {
    E::template load<typename E::Values>(tile, slot, head_dim, out);
  }
};

}  // namespace detail

}  // namespace mica::format
