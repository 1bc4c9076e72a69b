// SPDX-License-Identifier: Apache-2.0
//
// Per target: products of many tokens with integer formats. Panels (panels-inl.hpp) are filled in strips,
// each chunk of which is filled once for up to three blocks of tokens, whose activations are gathered once
// for all panels of a strip. Vectors multiply them (tiles-inl.hpp), or the matrix unit (matrix-inl.hpp).

#if defined(MICA_KERNEL_HIGHWAY_STRIPS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_KERNEL_HIGHWAY_STRIPS_INL_HPP
#undef MICA_KERNEL_HIGHWAY_STRIPS_INL_HPP
#else
#define MICA_KERNEL_HIGHWAY_STRIPS_INL_HPP
#endif

#include "mica/kernel/highway/matrix-inl.hpp"
#include "mica/kernel/highway/tiles-inl.hpp"

#if MICA_VECTORS
HWY_BEFORE_NAMESPACE();
namespace MICA_PER_TARGET {

/// A product of many tokens, without its weights: as MatmulArgs, rows of `blocks` blocks.
struct PanelProduct {
  QuantizedRows x;      // (n, k)
  MatrixView<float> y;  // (n, rows)
  std::size_t blocks;
  std::size_t first;
  std::size_t last;
  bool add;
};

/// Rows [16 p, 16 p + 16) of one token; what lies outside the slice is dropped. Args: PanelProduct or
/// MatmulArgs.
template <class Args>
HWY_INLINE void write_panel(const Args& a, std::size_t p, std::size_t token, const float* products) {
  const DF d;
  const std::size_t row = p * panel_rows, begin = HWY_MAX(a.first, row),
                    end = HWY_MIN(a.last, row + panel_rows);
  float* const y = a.y[token].data() + row;
  if (end - begin == panel_rows) {
    MICA_UNROLL
    for (std::size_t r = 0; r < panel_rows; r += lanes) {
      const VF product = hn::Load(d, products + r);
      hn::StoreU(a.add ? hn::Add(hn::LoadU(d, y + r), product) : product, d, y + r);
    }
  } else {
    for (std::size_t r = begin - row; r < end - row; ++r) y[r] = a.add ? y[r] + products[r] : products[r];
  }
}

/// The product of the rows that no panel of packed ones holds.
template <class P>
HWY_INLINE MatmulArgs<typename P::File> tail_product(const MatmulArgs<P>& a) {
  const std::size_t packed = a.w.packed_rows();
  return {a.w.tail(),      a.x,  a.y.cols(packed, a.w.rows() - packed), HWY_MAX(a.first, packed) - packed,
          a.last - packed, a.add};
}

/// Outputs are far apart and not in a near cache: those of this many tokens ahead are asked for.
inline constexpr std::size_t tokens_ahead = 4;

/// Writes panels [p, p + panels), of which the slice has all rows, for tokens [token, token + n).
template <bool adds, std::size_t max>
HWY_INLINE void write_whole_panels(const MatrixView<float>& y, std::size_t p, std::size_t panels,
                                   std::size_t token, std::size_t n,
                                   const float (*HWY_RESTRICT products)[max][panel_rows]) {
  const DF d;
  for (std::size_t t = 0; t < n; ++t) {
    float* HWY_RESTRICT out = y[token + t].data() + p * panel_rows;
    const float* const later = y[token + HWY_MIN(t + tokens_ahead, n - 1)].data() + p * panel_rows;
    for (std::size_t i = 0; i < panels; ++i, out += panel_rows) {
      prefetch_write(later + i * panel_rows);
      MICA_UNROLL
      for (std::size_t r = 0; r < panel_rows; r += lanes) {
        const VF product = hn::Load(d, products[i][t] + r);
        hn::StoreU(adds ? hn::Add(hn::LoadU(d, out + r), product) : product, d, out + r);
      }
    }
  }
}

/// Panels [p, p_end) of tokens [token, token + n), token by token, as outputs lie in memory.
template <std::size_t max>
HWY_INLINE void write_panels(const PanelProduct& a, std::size_t p, std::size_t p_end, std::size_t token,
                             std::size_t n, const float (*products)[max][panel_rows]) {
  const std::size_t first = a.first <= p * panel_rows ? p : p + 1,
                    last = a.last >= p_end * panel_rows ? p_end : p_end - 1;
  for (const std::size_t cut : {p, p_end - 1}) {  // of which the slice has some rows
    for (std::size_t t = 0; t < n && (cut < first || cut >= last); ++t)
      write_panel(a, cut, token + t, products[cut - p][t]);
    if (p_end == p + 1) break;
  }
  if (first >= last) return;
  const auto write = a.add ? write_whole_panels<true, max> : write_whole_panels<false, max>;
  write(a.y, first, last - first, token, n, products + (first - p));
}

// Panels that are filled together: 256 rows. With three blocks of tokens their outputs are 288 KiB, the
// panels themselves at most 84 and the activations of a block 40; all of it lies on the stack and in the
// second level.
inline constexpr std::size_t strip_panels = 16;
/// Blocks of tokens that share one filling.
inline constexpr std::size_t strip_blocks = 3;

/// Vectors or matrix unit, and the steps of tokens.
struct Blocks {
  bool matrix_unit;
  std::size_t step;  // tokens of a block

  /// The padded size of a block of `tokens` tokens: to whole tiles of the unit, else as far as a tile may
  /// reach past the last token.
  template <IntegerFormat F>
  [[nodiscard]] HWY_INLINE std::size_t padded(std::size_t tokens) const {
    if (matrix_unit) return (tokens + matrix_tokens - 1) / matrix_tokens * matrix_tokens;
    std::size_t reach = 0;
    while (reach < tokens) reach += next_tile<F>(tokens - reach);
    return reach;
  }
  /// What is gathered of a block of `tokens` tokens. Vectors read all codes where they lie; the unit those of
  /// whole tiles, as far as it reads nothing behind the `values` of a chunk.
  template <IntegerFormat F>
  [[nodiscard]] HWY_INLINE Gather gather(std::size_t tokens, std::size_t values) const {
    const std::size_t all = padded<F>(tokens);
    if (!matrix_unit) return {all, all, true};
    return {all, values % matrix_values<F> == 0 ? tokens / matrix_tokens * matrix_tokens : 0, false};
  }
};

/// The fewest tokens that the matrix unit, which always takes 16, multiplies faster than vectors.
inline constexpr std::size_t min_matrix_tokens = 9;

/// Blocks of a product of n tokens: as few as there can be, of much the same size.
template <IntegerFormat F>
HWY_INLINE Blocks blocks_of(std::size_t n) {
  bool unit = false;
  if constexpr (fits_matrix_unit<F>) unit = n >= min_matrix_tokens && MatrixUnit::used();
  const std::size_t count = (n + block_tokens<F> - 1) / block_tokens<F>,
                    grain = unit ? matrix_tokens : tile_tokens<F>;
  const std::size_t share = ((n + count - 1) / count + grain - 1) / grain * grain;
  return {unit, HWY_MIN(block_tokens<F>, share)};
}

/// Fills panels with blocks [b, b + n) of rows from panel p on; those that the matrix lacks repeat its last
/// one.
template <IntegerFormat F, class Fill>
HWY_INLINE void fill_panels(const Fill& fill, const Blocks& by, std::size_t p, std::size_t p_end,
                            std::size_t b, std::size_t n, std::size_t panels, Panel<F>* panel) {
  for (std::size_t i = 0; i < panels; ++i) {
    fill(HWY_MIN(p + i, p_end - 1), b, n, panel[i]);
    if constexpr (fits_matrix_unit<F>) {
      if (by.matrix_unit) sign_codes(panel[i]);
    }
  }
}

/// A source whose panels can be read where they are: pair_at(p, p_end, b) gives panels p and p + 1 < p_end.
template <class Source, class F>
concept InPlace = reads_in_place<F> && requires(const Source& source, std::size_t i) {
  { source.pair_at(i, i, i) } -> std::same_as<PanelPair<F>>;
};

/// Panels [p, p_end), at most strip_panels of them, times tokens [token, token_end), in at most strip_blocks
/// blocks.
template <IntegerFormat F, class Fill>
HWY_NOINLINE void multiply_strip(const PanelProduct& a, const Fill& fill, const Blocks& by, std::size_t p,
                                 std::size_t p_end, std::size_t token, std::size_t token_end) {
  TokenBlock<F> x;
  Panel<F> panel[strip_panels];
  alignas(64) float y[strip_blocks][strip_panels][block_tokens<F>][panel_rows];
  float* row[sets_outputs<F> ? block_tokens<F> : 1];
  const std::size_t panels = (p_end - p + 1) / tile_panels * tile_panels;
  const bool in_place = InPlace<Fill, F> && machine_offset<F> == 0 && !by.matrix_unit,
             sets = sets_outputs<F> && !by.matrix_unit;
  // Pairs of panels of which the slice has all rows are written by their last chunk.
  const auto is_whole = [&](std::size_t i) {
    return sets && a.first <= (p + i) * panel_rows && a.last >= (p + i + tile_panels) * panel_rows;
  };
  const auto for_each_block = [&](const auto& f) HWY_ATTR {
    for (std::size_t j = 0; token + j * by.step < token_end; ++j)
      f(y[j], token + j * by.step, HWY_MIN(by.step, token_end - token - j * by.step));
  };
  for_each_block([&](auto* out, std::size_t, std::size_t tokens) HWY_ATTR {
    if (sets) return;
    for (std::size_t i = 0; i < panels; ++i)
      std::fill_n(out[i][0], by.template padded<F>(tokens) * panel_rows, 0.0f);
  });
  for (std::size_t b = 0; b < a.blocks; b += Chunk<F>::blocks) {
    const std::size_t n = HWY_MIN(Chunk<F>::blocks, a.blocks - b);
    const bool last = b + n == a.blocks;
    if (!in_place) fill_panels<F>(fill, by, p, p_end, b, n, panels, panel);
    for_each_block([&](auto* out, std::size_t first, std::size_t tokens) HWY_ATTR {
      const std::size_t k = b * F::block_size;
      const Gather how = by.template gather<F>(tokens, HWY_MIN(Chunk<F>::values, a.x.cols - k));
      gather_tokens<F>(a.x, first, first + tokens, how, k, n, x);
      if constexpr (fits_matrix_unit<F>) {
        if (by.matrix_unit) return multiply_by_matrix_unit(panel, panels, x, tokens, n, out);
      }
      for (std::size_t t = 0; sets && last && t < tokens; ++t) row[t] = a.y[first + t].data();
      const auto pair_at = [&](std::size_t i) HWY_ATTR {
        PanelPair<F> pair{panel[i].lines[0][0], &panel[i].scales, sizeof(Panel<F>)};
        if constexpr (InPlace<Fill, F>) {
          if (in_place) pair = fill.pair_at(p + i, p_end, b);
        }
        pair.column = (p + i) * panel_rows;
        if (last && is_whole(i)) pair.out = {row, tokens, a.add};
        return pair;
      };
      multiply_block<F>(pair_at, panels, x, tokens, n, out);
    });
  }
  for_each_block([&](auto* out, std::size_t first, std::size_t tokens) HWY_ATTR {
    if (!sets) return write_panels(a, p, p_end, first, tokens, out);
    for (std::size_t i = 0; i < panels; i += tile_panels) {
      if (!is_whole(i)) write_panels(a, p + i, HWY_MIN(p + i + tile_panels, p_end), first, tokens, out + i);
    }
  });
}

/// The product, where fill(p, b, n, panel) unpacks blocks [b, b + n) of rows [16 p, 16 p + 16): n blocks of a
/// chunk of `panel`, its lines by Panel::set. Rows that the matrix lacks may hold anything finite.
template <IntegerFormat F, class Fill>
void multiply_panels(const PanelProduct& a, const Fill& fill) {
  const std::size_t n = a.y.rows(), p_end = (a.last + panel_rows - 1) / panel_rows;
  if (a.first >= a.last) return;
  const Blocks by = blocks_of<F>(n);
  const std::size_t together = strip_blocks * by.step;
  for (std::size_t t = 0; t < n; t += together) {
    for (std::size_t p = a.first / panel_rows; p < p_end; p += strip_panels)
      multiply_strip<F>(a, fill, by, p, HWY_MIN(p + strip_panels, p_end), t, HWY_MIN(t + together, n));
  }
}

}  // namespace MICA_PER_TARGET
HWY_AFTER_NAMESPACE();
#endif  // MICA_VECTORS
#endif
