// SPDX-License-Identifier: Apache-2.0
//
// Packing and its inverse for formats that are known at run time: for what moves rows between files and
// memory. Kernels never come here.
#pragma once

#include "mica/base/visit.hpp"
#include "mica/format/lists.hpp"
#include "mica/tensor/packed12.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace mica::tensor {

/// Whether that many rows of a format can be packed.
[[nodiscard]] inline bool can_pack(format::Id id, std::uint64_t rows) noexcept {
  bool packable = false;
  visit_id<format::All>(id, [&](auto type) {
    packable = PackableFormat<typename decltype(type)::type> && rows >= Rows16::rows;
  });
  return packable;
}

/// Packs rows of `cols` values, whole panels and perhaps the last rows of a matrix. `to` has as many bytes
/// and does not overlap. Requires a format that can be packed.
inline void pack_rows(format::Id id, std::span<const std::byte> rows, std::size_t cols,
                      std::byte* to) noexcept {
  visit_id<format::All>(id, [&](auto type) {
    using F = typename decltype(type)::type;
    if constexpr (PackableFormat<F>) {
      const auto* const first = reinterpret_cast<const typename F::Block*>(rows.data());
      const std::size_t n = rows.size() / (cols / F::block_size * sizeof(typename F::Block));
      pack(Matrix<F>(first, n, cols), to);
    }
  });
}

/// The way back, of the same bytes.
inline void unpack_rows(format::Id id, std::span<const std::byte> packed, std::size_t cols,
                        std::byte* to) noexcept {
  visit_id<format::All>(id, [&](auto type) {
    using F = typename decltype(type)::type;
    if constexpr (PackableFormat<F>) {
      using Block = typename F::Block;
      const auto* const first = reinterpret_cast<const Block*>(packed.data());
      const std::size_t row_bytes = cols / F::block_size * sizeof(Block);
      const Matrix<Packed<F>> matrix(first, packed.size() / row_bytes, cols);
      for (std::size_t r = 0; r < matrix.rows(); ++r) {
        for (std::size_t b = 0; b < matrix.blocks_per_row(); ++b, to += sizeof(Block)) {
          const Block block = matrix.block(r, b);
          std::memcpy(to, &block, sizeof block);
        }
      }
    }
  });
}

/// Whether the packed form of a format is Packed12.
[[nodiscard]] inline bool is_packable12(format::Id id) noexcept {
  bool packable = false;
  visit_id<format::All>(id, [&](auto type) { packable = Packable12Format<typename decltype(type)::type>; });
  return packable;
}

/// Whether that many rows of a format and width can be packed in twelve bits, if their numbers allow it.
[[nodiscard]] inline bool can_pack12(format::Id id, std::uint64_t rows, std::uint64_t cols) noexcept {
  return is_packable12(id) && rows >= Packed12Panel::rows && cols <= Packed12Panel::max_cols &&
         Packed12Panel::fits(static_cast<std::size_t>(cols));
}

/// Bytes of rows that are packed in twelve bits: whole panels, and rows as in the file.
[[nodiscard]] inline std::size_t packed12_bytes(std::size_t rows, std::size_t cols) noexcept {
  return rows / Packed12Panel::rows * Packed12Panel::bytes(cols) +
         rows % Packed12Panel::rows * cols * sizeof(Half);
}

/// Packs rows of `cols` values, whole panels and perhaps the last rows of a matrix, to packed12_bytes() that
/// do not overlap them. False where their numbers do not allow it. Requires can_pack12().
[[nodiscard]] inline bool pack12_rows(format::Id id, std::span<const std::byte> rows, std::size_t cols,
                                      std::byte* to) noexcept {
  bool packed = false;
  visit_id<format::All>(id, [&](auto type) {
    using F = typename decltype(type)::type;
    if constexpr (Packable12Format<F>) {
      using Block = typename F::Block;
      const auto* const first = reinterpret_cast<const Block*>(rows.data());
      packed = pack12(Matrix<F>(first, rows.size() / (cols * sizeof(Block)), cols), to);
    }
  });
  return packed;
}

}  // namespace mica::tensor
