// SPDX-License-Identifier: Apache-2.0
//
// Rows16: sixteen rows lie together, word by word, so that the lanes of a vector are rows and memory is read
// in one stream. It is a permutation: a packed matrix has the bytes of the file's, and any block can be had
// back. Rows beyond the last whole panel keep the layout of the file. With 16 rows of n blocks,
//
//   panel:    | stretch | stretch | ... |    a stretch has whole cache lines and 256 values of a row or more
//   stretch:  | codes of block 0 | codes of block 1 | ... | scales of block 0 | scales of block 1 | ... |
//   codes:    | word 0 of rows 0..15 | word 1 of rows 0..15 | ...    64 bytes each: four adjacent k of 16 rows, two
//                                                                    nibbles or four bit pairs deep
//   scales:   | unit 0 of rows 0..15 | unit 1 of rows 0..15 | ...    what is not codes, in words of 4 bytes,
//                                                                    then two, then one
//
// The last stretch of a panel may have fewer blocks. Where sizes are odd (Q6_K with an odd number of blocks)
// every second panel begins in the middle of a line; nothing depends on it but a little time.
#pragma once

#include "mica/format/concept.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace mica::tensor {

struct Rows16 {
  static constexpr std::size_t rows = 16;

  /// Packs sixteen rows of n blocks, the first of which are at `first`; `panel` does not overlap them.
  template <PackableFormat F>
  static void pack(const typename F::Block* first, std::size_t n, std::byte* panel) noexcept {
    using Block = typename F::Block;
    constexpr std::size_t tail_at = F::codes_at + F::code_bytes, tail = sizeof(Block) - tail_at;
    for (std::size_t b = 0; b < n; ++b) {
      const Place to = place<F>(n, b);
      std::byte scales[rows][scale_bytes<F>];
      for (std::size_t r = 0; r < rows; ++r) {
        const auto* const from = reinterpret_cast<const std::byte*>(first + r * n + b);
        for (std::size_t w = 0; w < F::code_bytes / 4; ++w) {
          std::uint32_t word;
          std::memcpy(&word, from + F::codes_at + 4 * w, 4);
          word = pack_word<F>(w, word);
          std::memcpy(panel + to.codes + (w * rows + r) * 4, &word, 4);
        }
        std::memcpy(scales[r], from, F::codes_at);
        std::memcpy(scales[r] + F::codes_at, from + tail_at, tail);
      }
      for_each_unit<F>([&](std::size_t at, std::size_t bytes) {
        for (std::size_t r = 0; r < rows; ++r)
          std::memcpy(panel + to.scales + at * rows + r * bytes, scales[r] + at, bytes);
      });
    }
  }
  /// Block b of a row, as in the file.
  template <PackableFormat F>
  [[nodiscard]] static typename F::Block block(const std::byte* panel, std::size_t n, std::size_t row,
                                               std::size_t b) noexcept {
    typename F::Block block;
    auto* const to = reinterpret_cast<std::byte*>(&block);
    constexpr std::size_t tail_at = F::codes_at + F::code_bytes;
    const Place from = place<F>(n, b);
    for (std::size_t w = 0; w < F::code_bytes / 4; ++w) {
      std::uint32_t word;
      std::memcpy(&word, panel + from.codes + (w * rows + row) * 4, 4);
      word = unpack_word<F>(w, word);
      std::memcpy(to + F::codes_at + 4 * w, &word, 4);
    }
    std::byte scales[scale_bytes<F>];
    for_each_unit<F>([&](std::size_t at, std::size_t bytes) {
      std::memcpy(scales + at, panel + from.scales + at * rows + row * bytes, bytes);
    });
    std::memcpy(to, scales, F::codes_at);
    std::memcpy(to + tail_at, scales + F::codes_at, sizeof(block) - tail_at);
    return block;
  }

  /// Bytes of a panel of `cols` columns.
  template <PackableFormat F>
  [[nodiscard]] static constexpr std::size_t panel_bytes(std::size_t cols) noexcept {
    return rows * (cols / F::block_size) * sizeof(typename F::Block);
  }

  /// Bytes of a block that are not codes.
  template <PackableFormat F>
  static constexpr std::size_t scale_bytes = sizeof(typename F::Block) - F::code_bytes;

  /// Blocks in a stretch.
  template <PackableFormat F>
  [[nodiscard]] static constexpr std::size_t stretch() noexcept {
    std::size_t blocks = 1;
    while (blocks * F::block_size < 256 || blocks * rows * sizeof(typename F::Block) % 64 != 0) blocks *= 2;
    return blocks;
  }

  /// Where block b of sixteen rows lies, in bytes from the beginning of a panel of n blocks.
  struct Place {
    std::size_t codes = 0;
    std::size_t scales = 0;
  };
  template <PackableFormat F>
  [[nodiscard]] static constexpr Place place(std::size_t n, std::size_t b) noexcept {
    const std::size_t first = b - b % stretch<F>(), blocks = std::min(stretch<F>(), n - first);
    const std::size_t begin = first * rows * sizeof(typename F::Block);
    return {begin + (b - first) * rows * F::code_bytes,
            begin + blocks * rows * F::code_bytes + (b - first) * rows * scale_bytes<F>};
  }

 private:
  /// Calls f(offset, bytes) for the units of scales: offset among the scales of one row.
  template <PackableFormat F, class Unit>
  static void for_each_unit(Unit&& f) noexcept {
    for (std::size_t at = 0; at < scale_bytes<F>;) {
      const std::size_t left = scale_bytes<F> - at, bytes = left >= 4 ? 4 : left >= 2 ? 2 : 1;
      f(at, bytes);
      at += bytes;
    }
  }
  template <PackableFormat F>
  static std::uint32_t pack_word(std::size_t w, std::uint32_t word) noexcept {
    if constexpr (requires { F::pack_word(w, word); }) return F::pack_word(w, word);
    return word;
  }
  template <PackableFormat F>
  static std::uint32_t unpack_word(std::size_t w, std::uint32_t word) noexcept {
    if constexpr (requires { F::unpack_word(w, word); }) return F::unpack_word(w, word);
    return word;
  }
};

}  // namespace mica::tensor
