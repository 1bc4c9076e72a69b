// SPDX-License-Identifier: Apache-2.0
//
// Products with integer formats. Up to 256 rows, a strip, meet up to 96 tokens, chunk by chunk: tokens are
// gathered once for the rows of a strip, of few tokens several chunks at a time, and a panel is filled once
// for all tokens. One token meets packed rows without a panel. All scratch is on the stack, about 150 KiB.
#pragma once

#include "mica/kernel/scalar/matmul.hpp"
#include "mica/kernel/xsimd/one_token.hpp"
#include "mica/kernel/xsimd/tiles.hpp"

namespace mica::kernel::xsimd {

/// Whether products with integer format F are computed here.
template <class F, class A>
inline constexpr bool multiplies = false;
template <IntegerFormat F, class A>
inline constexpr bool multiplies<F, A> = fits_panel<F>&& has_words<A>;

/// Panels of a strip.
inline constexpr std::size_t strip_panels = 16;

/// A product without its weights, as MatmulArgs.
struct PanelProduct {
  QuantizedRows x;      // (n, cols)
  MatrixView<float> y;  // (n, rows)
  std::size_t cols;
  std::size_t first;
  std::size_t last;
  bool add;
};

/// Tokens of a product that meet a strip together.
struct TokenRange {
  std::size_t first;
  std::size_t count;  // at most `gathered`
};

/// The outputs of a strip: (panels, tokens, 16).
struct Strip {
  alignas(64) float y[strip_panels][gathered][panel_rows];
};

/// Values [k, end) of some tokens, (chunks, tokens). offset: what is added to codes of weights.
template <PanelShape shape, class A>
[[gnu::noinline]] void gather_tokens(const QuantizedRows& x, TokenRange tokens, std::size_t k,
                                     std::size_t end, std::int32_t offset, TokenChunk* out) noexcept {
  for (; k < end; k += chunk_values) {
    const std::size_t n = std::min(chunk_values, end - k);
    for (std::size_t t = 0; t < tokens.count; ++t)
      gather<shape, A>(x, tokens.first + t, k, n, offset, *out++);
  }
}

/// Writes some panels, of which the first begins with `row`, token by token, as outputs lie in memory.
template <class A>
[[gnu::noinline]] void write_strip(const PanelProduct& a, std::size_t row, std::size_t panels,
                                   TokenRange tokens, const Strip& strip) noexcept {
  for (std::size_t t = 0; t < tokens.count; ++t) {
    float* const y = a.y[tokens.first + t].data();
    for (std::size_t p = 0; p < panels; ++p) {
      const std::size_t from = row + panel_rows * p;
      const std::size_t begin = std::max(a.first, from), end = std::min(a.last, from + panel_rows);
      const float* const products = strip.y[p][t];
      for (std::size_t r = begin; r < end; ++r) y[r] = a.add ? y[r] + products[r - from] : products[r - from];
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

/// Panels [p, p + panels) times some tokens.
template <class F, class A, class Rows>
void multiply_strip(const PanelProduct& a, const Rows& rows, std::size_t p, std::size_t panels,
                    TokenRange tokens) noexcept {
  Strip strip;
  TokenChunk x[gathered];
  for (std::size_t i = 0; i < panels; ++i) std::fill_n(strip.y[i][0], panel_rows * tokens.count, 0.0f);
  const std::size_t step = gathered / tokens.count * chunk_values;
  for (std::size_t k = 0; k < a.cols; k += step) {
    const std::size_t end = std::min(k + step, a.cols);
    gather_tokens<shape_of<A, F>, A>(a.x, tokens, k, end, F::code_offset, x);
    for (std::size_t i = 0; i < panels; ++i) {
      const TokenChunk* chunk = x;
      for (std::size_t c = k; c < end; c += chunk_values, chunk += tokens.count) {
        const std::size_t n = std::min(chunk_values, end - c) / F::block_size;
        multiply_chunk<F, A>(rows, p + i, c / F::block_size, n, chunk, tokens.count, strip.y[i][0]);
      }
    }
  }
  write_strip<A>(a, rows.row(p), panels, tokens, strip);
}

/// The product, with weights from `rows`.
template <class F, class A, class Rows>
void multiply_rows(const PanelProduct& a, const Rows& rows) noexcept {
  for (std::size_t t = 0; t < a.y.rows(); t += gathered) {
    const TokenRange tokens{t, std::min(gathered, a.y.rows() - t)};
    for (std::size_t p = 0; p < rows.panels(); p += strip_panels)
      multiply_strip<F, A>(a, rows, p, std::min(strip_panels, rows.panels() - p), tokens);
  }
}

/// Limit: products that follow kernel/fast8.hpp are computed by the specification.
template <class A, class F>
void matmul_integer(const MatmulArgs<F>& a) noexcept {
  if (is_fast8(a)) return scalar::matmul<F>(a);
  if (a.first >= a.last) return;
  multiply_rows<F, A>({a.x.codes, a.y, a.w.cols(), a.first, a.last, a.add},
                      FileRows<F, A>{a.w, a.first, a.last});
}
template <class A, class F>
void matmul_integer(const MatmulArgs<tensor::Packed<F>>& a) noexcept {
  if (is_fast8(a)) return scalar::matmul<tensor::Packed<F>>(a);
  const std::size_t packed = a.w.packed_rows(), end = std::min(a.last, packed);
  if (a.first < end)
    multiply_rows<F, A>({a.x.codes, a.y, a.w.cols(), a.first, end, a.add}, PackedRows<F>{a.w, a.first, end});
  if (a.last <= packed) return;
  const std::size_t first = std::max(a.first, packed) - packed;
  matmul_integer<A>(
      MatmulArgs<F>{a.w.tail(), a.x, a.y.cols(packed, a.w.rows() - packed), first, a.last - packed, a.add});
}

}  // namespace mica::kernel::xsimd
