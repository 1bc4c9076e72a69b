// SPDX-License-Identifier: Apache-2.0
//
// Packing and its inverse for formats that are known at run time: for code that moves rows between files and
// memory. Kernels do not use it.
#pragma once

#include "mica/base/visit.hpp"
#include "mica/tensor/packed12.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace mica::tensor {

/// The operations on rows of one format. Rows are whole, of `cols` values, and do not overlap `to`.
struct Packing {
  /// Packs whole panels and perhaps the last rows of a matrix into as many bytes. Null: it cannot be packed.
  void (*pack)(std::span<const std::byte> rows, std::size_t cols, std::byte* to) noexcept = nullptr;
  /// Its inverse, of the same bytes. Null where pack rounds (kernel/fast8.hpp).
  void (*unpack)(std::span<const std::byte> packed, std::size_t cols, std::byte* to) noexcept = nullptr;
  /// Packs rows in twelve bits, packed12_bytes(); false: their values do not allow it. Null: no F16 or BF16.
  bool (*pack12)(std::span<const std::byte> rows, std::size_t cols, std::byte* to) noexcept = nullptr;

  /// Whether `rows` rows of any width can be packed: a panel has sixteen.
  [[nodiscard]] bool can_pack(std::uint64_t rows) const noexcept {
    return pack != nullptr && rows >= Rows16::rows;
  }
  /// Whether `rows` rows of that width can be packed in twelve bits, if their values allow it.
  [[nodiscard]] bool can_pack12(std::uint64_t rows, std::uint64_t cols) const noexcept {
    return pack12 != nullptr && rows >= Packed12Panel::rows && cols <= Packed12Panel::max_cols &&
           Packed12Panel::fits(static_cast<std::size_t>(cols));
  }
};

/// Bytes of rows that are packed in twelve bits: whole panels, and rows as in the file.
[[nodiscard]] inline std::size_t packed12_bytes(std::size_t rows, std::size_t cols) noexcept {
  return rows / Packed12Panel::rows * Packed12Panel::bytes(cols) +
         rows % Packed12Panel::rows * cols * sizeof(Half);
}

namespace detail {

/// Bytes in the layout of the file, as a matrix.
template <class F>
[[nodiscard]] Matrix<F> rows_of(std::span<const std::byte> bytes, std::size_t cols) noexcept {
  const std::size_t row_bytes = cols / F::block_size * sizeof(typename F::Block);
  return {reinterpret_cast<const typename F::Block*>(bytes.data()), bytes.size() / row_bytes, cols};
}

template <class F>
void unpack_rows(std::span<const std::byte> packed, std::size_t cols, std::byte* to) noexcept {
  const auto matrix = rows_of<Packed<F>>(packed, cols);
  for (std::size_t r = 0; r < matrix.rows(); ++r) {
    for (std::size_t b = 0; b < matrix.blocks_per_row(); ++b, to += sizeof(typename F::Block)) {
      const typename F::Block block = matrix.block(r, b);
      std::memcpy(to, &block, sizeof block);
    }
  }
}

}  // namespace detail

/// Whether `rows` rows of a format of List can be packed.
template <class List>
[[nodiscard]] bool can_pack(format::Id id, std::uint64_t rows) noexcept {
  bool packable = false;
  visit_id<List>(id, [&](auto type) { packable = PackableFormat<typename decltype(type)::type>; });
  return packable && rows >= Rows16::rows;
}

/// Whether the packed form of a format of List is Packed12.
template <class List>
[[nodiscard]] bool is_packable12(format::Id id) noexcept {
  bool packable = false;
  visit_id<List>(id, [&](auto type) { packable = Packable12Format<typename decltype(type)::type>; });
  return packable;
}

/// The packing of format F.
template <WeightFormat F>
[[nodiscard]] Packing packing() noexcept {
  Packing out;
  if constexpr (PackableFormat<F>) {
    out.pack = [](std::span<const std::byte> rows, std::size_t cols, std::byte* to) noexcept {
      tensor::pack(detail::rows_of<F>(rows, cols), to);
    };
    out.unpack = detail::unpack_rows<F>;
  }
  if constexpr (Packable12Format<F>) {
    out.pack12 = [](std::span<const std::byte> rows, std::size_t cols, std::byte* to) noexcept {
      return tensor::pack12(detail::rows_of<F>(rows, cols), to);
    };
  }
  return out;
}

/// The packing of the format with this number; one without functions for a format that is not in List.
template <class List>
[[nodiscard]] Packing packing_in(format::Id id) noexcept {
  Packing out;
  visit_id<List>(id, [&](auto type) { out = packing<typename decltype(type)::type>(); });
  return out;
}

/// packing_in of some list: what a reader or writer of packed rows is given.
using FindPacking = Packing (*)(format::Id id) noexcept;

}  // namespace mica::tensor
