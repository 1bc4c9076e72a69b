// SPDX-License-Identifier: Apache-2.0
//
// Where the rows of a matrix are, and how a chunk of sixteen of them becomes a panel. Rows in the layout of
// the file are packed on the stack first, as tensor::pack does, so that a format has one codec. Rows of
// formats without a codec are unpacked by the format's own code.
#pragma once

#include "mica/kernel/xsimd/codec.hpp"
#include "mica/tensor/packed.hpp"

namespace mica::kernel::xsimd {

using tensor::Rows16;
static_assert(Rows16::rows == panel_rows);

/// Blocks of a chunk.
template <class F>
inline constexpr std::size_t chunk_blocks = chunk_values / F::block_size;

template <class A, class F>
inline constexpr PanelShape shape_of = {F::block_size,
                                        F::group,
                                        F::has_mins,
                                        F::group < F::block_size,
                                        F::code_offset != 0 && !signed_codes<A, F::code_max>,
                                        signed_codes<A, F::code_max>};

/// Lines from `line` on of rows from r on: a period of codes. p: word 0 of a block, of row r.
template <class F, class A, std::size_t... i>
void set_lines(const std::uint8_t* p, std::size_t s, std::size_t line, std::size_t r, Panel& out,
               std::index_sequence<i...>) noexcept {
  const VU8<A> offset(shape_of<A, F>.with_sign ? static_cast<std::uint8_t>(F::code_offset) : std::uint8_t{0});
  ((Codec<F>::template line<A, 4 * i>(p, s) - offset).store_unaligned(out.lines[line + i][r]), ...);
}

/// n blocks of packed rows.
template <class F, class A>
[[gnu::flatten]] void fill_packed(const std::uint8_t* codes, const std::uint8_t* scales, std::size_t n,
                                  Panel& out) noexcept {
  constexpr std::size_t period = Codec<F>::period;
  for (std::size_t b = 0; b < n; ++b) {
    for (std::size_t r = 0; r < panel_rows; r += lanes<A>) {
      Codec<F>::template scales<A>(scales + panel_rows * Rows16::scale_bytes<F> * b, b, r, out.scales);
      for (std::size_t s = 0; s < F::block_size / period; ++s) {
        set_lines<F, A>(codes + panel_rows * F::code_bytes * b + 4 * r, s,
                        (F::block_size * b + period * s) / 4, r, out, std::make_index_sequence<period / 4>());
      }
    }
  }
}

/// Scale bytes [at, at + bytes) of a block of each row in the layout of packed rows.
template <class A, std::size_t at, std::size_t bytes>
[[gnu::always_inline]] inline void pack_scales(RowBytes rows, std::byte* out) noexcept {
  constexpr std::size_t words = bytes / 4 * 4;
  transpose_words<A, at, bytes / 4>(rows, out);
  if constexpr (bytes - words >= 2) copy_units<2>(rows, at + words, out + panel_rows * words);
  if constexpr (bytes % 2 == 1) copy_units<1>(rows, at + bytes - 1, out + panel_rows * (bytes - 1));
}

/// One block of each row in the layout of packed rows.
template <class F, class A>
[[gnu::always_inline]] inline void pack_block(RowBytes rows, std::byte* codes, std::byte* scales) noexcept {
  constexpr std::size_t tail = F::codes_at + F::code_bytes;
  static_assert(F::codes_at % 4 == 0 || tail == sizeof(typename F::Block));
  transpose_words<A, F::codes_at, F::code_bytes / 4>(rows, codes);
  if constexpr (requires { F::pack_word(0, 0); }) {
    std::uint32_t words[panel_rows];
    for (std::size_t w = 0; w < F::code_bytes / 4; ++w) {
      std::byte* const line = codes + sizeof(words) * w;
      std::memcpy(words, line, sizeof(words));
      for (std::uint32_t& each : words) each = F::pack_word(w, each);
      std::memcpy(line, words, sizeof(words));
    }
  }
  pack_scales<A, 0, F::codes_at>(rows, scales);
  pack_scales<A, tail, sizeof(typename F::Block) - tail>(rows, scales + panel_rows * F::codes_at);
}

/// Codes of a chunk of sixteen rows, in the order of the file.
struct CodeRows {
  alignas(64) std::uint8_t code[panel_rows][chunk_values];
};

/// Block b of row r, by the format's own code: codes to `codes`, scales to `out`.
template <class A, class F>
[[gnu::noinline]] void unpack_block(const typename F::Block& block, std::size_t b, std::size_t r,
                                    CodeRows& codes, PanelScales& out) noexcept {
  constexpr int offset = shape_of<A, F>.with_sign ? 0 : F::code_offset;
  constexpr std::size_t groups = F::block_size / F::group;
  alignas(64) format::Codes<F::block_size, F::group> parts;
  F::unpack(block, parts);
  std::uint8_t* const code = codes.code[r] + F::block_size * b;
  for (std::size_t i = 0; i < F::block_size; ++i) code[i] = static_cast<std::uint8_t>(parts.code[i] + offset);
  for (std::size_t g = 0; g < groups; ++g) {
    if constexpr (shape_of<A, F>.has_scales)
      out.scale[groups * b + g][r] = static_cast<float>(parts.scale[g]);
    if constexpr (F::has_mins) out.min[groups * b + g][r] = static_cast<float>(parts.min[g]);
  }
  out.d[b][r] = parts.d;
  if constexpr (F::has_mins) out.minus_dmin[b][r] = -parts.dmin;
}

/// Blocks of sixteen packed rows.
struct PackedBlocks {
  const std::uint8_t* codes;
  const std::uint8_t* scales;
  const std::uint8_t* ahead;  // prefetched meanwhile
};

/// Bytes between the packed rows that are multiplied and those that are prefetched: as far as 16 to 24 KiB,
/// the distance changes the speed by less than the spread of measurements; at 8 KiB Q6_K is half as fast.
inline constexpr std::size_t packed_ahead = 16 << 10;

/// Memory for the packed blocks of a chunk.
template <class F>
struct PackedChunk {
  alignas(64) std::byte codes[chunk_blocks<F>][panel_rows * F::code_bytes];
  alignas(64) std::byte scales[chunk_blocks<F>][panel_rows * Rows16::scale_bytes<F>];
};

/// Packs n blocks of rows in the layout of the file, and prefetches those `ahead` bytes later.
template <class F, class A>
[[gnu::noinline, gnu::flatten]] void pack_chunk(RowBytes rows, std::size_t n, std::size_t ahead,
                                                PackedChunk<F>& out) noexcept {
  constexpr std::size_t block_bytes = sizeof(typename F::Block);
  for (std::size_t b = 0; b < n; ++b) {
    RowBytes blocks = rows.from(block_bytes * b);
    asm("" : "+r"(blocks.first), "+r"(blocks.stride));  // or gcc keeps 16 pointers in vector registers
    for (std::size_t r = 0; r < panel_rows; ++r) {
      for (std::size_t line = 0; line < block_bytes; line += 64) prefetch(blocks[r], ahead + line);
    }
    pack_block<F, A>(blocks, out.codes[b], out.scales[b]);
  }
}

/// Rows [first, last) of a matrix in the layout of the file, from the first one on; the last one is repeated.
template <class F, class A>
struct FileRows {
  tensor::Matrix<F> w;
  std::size_t first;
  std::size_t last;

  [[nodiscard]] std::size_t row(std::size_t p) const noexcept { return first + panel_rows * p; }
  [[nodiscard]] std::size_t panels() const noexcept { return (last - first + panel_rows - 1) / panel_rows; }
  [[nodiscard]] const typename F::Block& block(std::size_t p, std::size_t r, std::size_t b) const noexcept {
    return w.row(std::min(row(p) + r, last - 1))[b];
  }
  /// Blocks [b, b + n) of panel p, packed in `place`.
  [[nodiscard]] PackedBlocks packed(std::size_t p, std::size_t b, std::size_t n,
                                    PackedChunk<F>& place) const noexcept {
    const std::size_t row_bytes = w.blocks_per_row() * sizeof(typename F::Block);
    RowBytes rows{reinterpret_cast<const std::byte*>(&block(p, 0, b)), row_bytes};
    typename F::Block copies[panel_rows][chunk_blocks<F>];
    if (row(p) + panel_rows > last) {
      for (std::size_t r = 0; r < panel_rows; ++r) std::copy_n(&block(p, r, b), n, copies[r]);
      rows = {reinterpret_cast<const std::byte*>(copies), sizeof(copies[0])};
    }
    pack_chunk<F, A>(rows, n, panel_rows * row_bytes, place);
    const auto* const codes = reinterpret_cast<const std::uint8_t*>(place.codes);
    return {codes, reinterpret_cast<const std::uint8_t*>(place.scales), codes};
  }
};

/// The panels of packed rows that a slice reaches.
template <class F>
struct PackedRows {
  tensor::Matrix<tensor::Packed<F>> w;
  std::size_t first;
  std::size_t last;

  [[nodiscard]] std::size_t row(std::size_t p) const noexcept {
    return (first / panel_rows + p) * panel_rows;
  }
  [[nodiscard]] std::size_t panels() const noexcept {
    return (last + panel_rows - 1) / panel_rows - first / panel_rows;
  }
  [[nodiscard]] typename F::Block block(std::size_t p, std::size_t r, std::size_t b) const noexcept {
    return w.block(row(p) + r, b);
  }
  [[nodiscard]] PackedBlocks packed(std::size_t p, std::size_t b, std::size_t,
                                    PackedChunk<F>&) const noexcept {
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(w.panel(first / panel_rows + p));
    const Rows16::Place at = Rows16::place<F>(w.blocks_per_row(), b);
    return {bytes + at.codes, bytes + at.scales, bytes + at.codes + packed_ahead};
  }
};

/// Blocks [b, b + n) of panel p.
template <class F, class A, class Rows>
void fill(const Rows& rows, std::size_t p, std::size_t b, std::size_t n, Panel& out) noexcept {
  if constexpr (HasCodec<F>) {
    PackedChunk<F> place;
    const PackedBlocks blocks = rows.packed(p, b, n, place);
    fill_packed<F, A>(blocks.codes, blocks.scales, n, out);
  } else {
    CodeRows codes = {};
    for (std::size_t r = 0; r < panel_rows; ++r) {
      for (std::size_t i = 0; i < n; ++i)
        unpack_block<A, F>(rows.block(p, r, b + i), i, r, codes, out.scales);
    }
    const RowBytes bytes{reinterpret_cast<const std::byte*>(codes.code), chunk_values};
    transpose_words<A, 0, chunk_values / 4>(bytes, reinterpret_cast<std::byte*>(out.lines));
  }
}

}  // namespace mica::kernel::xsimd
