// SPDX-License-Identifier: Apache-2.0
//
// Packing and its inverse, and coding, for formats that are known at run time: for who moves rows between files and memory.
// Kernels never come here.
#pragma once

#include "mica/base/visit.hpp"
#include "mica/format/lists.hpp"
#include "mica/tensor/coded.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace mica::tensor {

/// Whether rows of that format can be packed, and so many of them are.
template <PackLayout L = Rows16>
[[nodiscard]] bool can_pack(format::Id id, std::uint64_t rows) noexcept {
  bool packable = false;
  visit_id<format::All>(
      id, [&](auto type) { packable = PackableFormat<typename decltype(type)::type> && rows >= L::rows; });
  return packable;
}

/// Packs rows of `cols` values, whole panels and perhaps the last rows of a matrix. `to` has as many bytes and does not overlap.
/// Requires a format that can be packed.
template <PackLayout L = Rows16>
void pack_rows(format::Id id, std::span<const std::byte> rows, std::size_t cols, std::byte* to) noexcept {
  visit_id<format::All>(id, [&](auto type) {
    using F = typename decltype(type)::type;
    if constexpr (PackableFormat<F>) {
      const auto* const first = reinterpret_cast<const typename F::Block*>(rows.data());
      const std::size_t n = rows.size() / (cols / F::block_size * sizeof(typename F::Block));
      pack<L>(Matrix<F>(first, n, cols), to);
    }
  });
}

/// The way back, of the same bytes.
template <PackLayout L = Rows16>
void unpack_rows(format::Id id, std::span<const std::byte> packed, std::size_t cols, std::byte* to) noexcept {
  visit_id<format::All>(id, [&](auto type) {
    using F = typename decltype(type)::type;
    if constexpr (PackableFormat<F>) {
      using Block = typename F::Block;
      const auto* const first = reinterpret_cast<const Block*>(packed.data());
      const std::size_t row_bytes = cols / F::block_size * sizeof(Block);
      const Matrix<Packed<F, L>> matrix(first, packed.size() / row_bytes, cols);
      for (std::size_t r = 0; r < matrix.rows(); ++r) {
        for (std::size_t b = 0; b < matrix.blocks_per_row(); ++b, to += sizeof(Block)) {
          const Block block = matrix.block(r, b);
          std::memcpy(to, &block, sizeof block);
        }
      }
    }
  });
}

/// Whether that format can be coded: its packed form is coded then.
[[nodiscard]] inline bool is_codable(format::Id id) noexcept {
  bool codable = false;
  visit_id<format::All>(id, [&](auto type) { codable = CodableFormat<typename decltype(type)::type>; });
  return codable;
}

/// Whether rows of that format and width can be coded, if their numbers allow it, and so many of them are.
[[nodiscard]] inline bool can_code(format::Id id, std::uint64_t rows, std::uint64_t cols) noexcept {
  return is_codable(id) && rows >= CodedPanel::rows && cols <= CodedPanel::max_cols &&
         CodedPanel::fits(static_cast<std::size_t>(cols));
}

/// Bytes of so many rows that are coded: whole panels, and rows as in the file.
[[nodiscard]] inline std::size_t coded_bytes(std::size_t rows, std::size_t cols) noexcept {
  return rows / CodedPanel::rows * CodedPanel::bytes(cols) + rows % CodedPanel::rows * cols * sizeof(Half);
}

/// Codes rows of `cols` values, whole panels and perhaps the last rows of a matrix, to coded_bytes() that do not overlap them.
/// False where they cannot be coded. Requires can_code().
[[nodiscard]] inline bool code_rows(format::Id id, std::span<const std::byte> rows, std::size_t cols,
                                    std::byte* to) noexcept {
  bool coded = false;
  visit_id<format::All>(id, [&](auto type) {
    using F = typename decltype(type)::type;
    if constexpr (CodableFormat<F>) {
      using Block = typename F::Block;
      const auto* const first = reinterpret_cast<const Block*>(rows.data());
      coded = code(Matrix<F>(first, rows.size() / (cols * sizeof(Block)), cols), to);
    }
  });
  return coded;
}

}  // namespace mica::tensor
