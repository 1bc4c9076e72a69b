// SPDX-License-Identifier: Apache-2.0
//
// Products with integer formats. Up to 256 rows meet up to 96 tokens, chunk by chunk: tokens are gathered once for
// all rows, of few tokens several chunks at a time, and a panel is filled once for all tokens.
#pragma once

#include "mica/kernel/scalar/matmul.hpp"
#include "mica/kernel/xsimd/one_token.hpp"
#include "mica/kernel/xsimd/tiles.hpp"

namespace mica::kernel::xsimd {

/// Whether integer products with F are computed here.
template <class F, class A>
inline constexpr bool multiplies = false;
template <IntegerFormat F, class A>
inline constexpr bool multiplies<F, A> = fits_panel<F>&& has_words<A>;

/// Panels of a strip.
inline constexpr std::size_t strip_panels = 16;

/// The product of a strip: (panels, tokens, 16).
struct Strip {
  alignas(64) float y[strip_panels][gathered][panel_rows];
};

/// Panels [p, p_end) of tokens [token, token + tokens), token by token, as outputs lie in memory.
template <class Args, class Rows>
void write_strip(const Args& a, const Rows& rows, std::size_t p, std::size_t p_end, std::size_t token,
                 std::size_t tokens, const Strip& strip) noexcept {
  for (std::size_t t = 0; t < tokens; ++t) {
    float* const y = a.y[token + t].data();
    for (std::size_t i = p; i < p_end; ++i) {
      const float* const products = strip.y[i - p][t];
      const std::size_t row = rows.row(i), begin = std::max(rows.first, row),
                        end = std::min(rows.last, row + panel_rows);
      for (std::size_t r = begin; r < end; ++r) y[r] = a.add ? y[r] + products[r - row] : products[r - row];
    }
  }
}

/// Adds blocks [b, b + n) of panel p times some tokens to y[16 t].
template <class F, class A, class Rows>
void multiply_chunk(const Rows& rows, std::size_t p, std::size_t b, std::size_t n, const TokenChunk* x,
                    std::size_t tokens, float* y) noexcept {
  if constexpr (HasCodec<F>) {
    if (tokens == 1) {
      PackedChunk<F> place;
      return multiply_one<F, A>(rows.packed(p, b, n, place), n, *x, y);
    }
  }
  Panel panel;
  fill<F, A>(rows, p, b, n, panel);
  multiply<shape_of<A, F>, A>(panel, n, x, tokens, y);
}

/// Panels [p, p_end) times tokens [token, token + tokens), at most `gathered`.
template <class F, class A, class Args, class Rows>
void multiply_strip(const Args& a, const Rows& rows, std::size_t p, std::size_t p_end, std::size_t token,
                    std::size_t tokens) noexcept {
  constexpr PanelShape shape = shape_of<A, F>;
  Strip strip;
  TokenChunk x[gathered];  // (chunks, tokens)
  for (std::size_t i = 0; i < p_end - p; ++i) std::fill_n(strip.y[i][0], panel_rows * tokens, 0.0f);
  const std::size_t cols = a.w.cols(), step = gathered / tokens * chunk_values;
  for (std::size_t k = 0; k < cols; k += step) {
    const std::size_t end = std::min(k + step, cols);
    TokenChunk* out = x;
    for (std::size_t c = k; c < end; c += chunk_values) {
      for (std::size_t t = 0; t < tokens; ++t)
        gather<shape>(a.x.codes, token + t, c, std::min(chunk_values, end - c), F::code_offset, *out++);
    }
    for (std::size_t i = p; i < p_end; ++i) {
      const TokenChunk* chunk = x;
      for (std::size_t c = k; c < end; c += chunk_values, chunk += tokens) {
        const std::size_t n = std::min(chunk_values, end - c) / F::block_size;
        multiply_chunk<F, A>(rows, i, c / F::block_size, n, chunk, tokens, strip.y[i - p][0]);
      }
    }
  }
  write_strip(a, rows, p, p_end, token, tokens, strip);
}

/// The product of some rows, where `rows` fills panels.
template <class F, class A, class Args, class Rows>
void multiply_rows(const Args& a, const Rows& rows) noexcept {
  for (std::size_t t = 0; t < a.y.rows(); t += gathered) {
    const std::size_t tokens = std::min(gathered, a.y.rows() - t);
    for (std::size_t p = 0; p < rows.panels(); p += strip_panels)
      multiply_strip<F, A>(a, rows, p, std::min(p + strip_panels, rows.panels()), t, tokens);
  }
}

/// Limit: products that follow kernel/fast8.hpp are computed by the specification.
template <class A, class F>
void matmul_integer(const MatmulArgs<F>& a) noexcept {
  if (is_fast8(a)) return scalar::matmul<F>(a);
  if (a.first < a.last) multiply_rows<F, A>(a, FileRows<F, A>{a.w, a.first, a.last});
}
template <class A, class F>
void matmul_integer(const MatmulArgs<tensor::Packed<F>>& a) noexcept {
  if (is_fast8(a)) return scalar::matmul<tensor::Packed<F>>(a);
  const std::size_t packed = a.w.packed_rows(), end = std::min(a.last, packed);
  if (a.first < end) multiply_rows<F, A>(a, PackedRows<F>{a.w, a.first, end});
  if (a.last <= packed) return;
  const MatmulArgs<F> tail{
      a.w.tail(),      a.x,  a.y.cols(packed, a.w.rows() - packed), std::max(a.first, packed) - packed,
      a.last - packed, a.add};
  matmul_integer<A>(tail);
}

}  // namespace mica::kernel::xsimd
