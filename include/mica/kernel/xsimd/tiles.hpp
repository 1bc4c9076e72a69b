// SPDX-License-Identifier: Apache-2.0
//
// A panel times a few tokens, in registers. Lanes are rows: a line of the panel meets four broadcast bytes of
// each token, and no sum crosses lanes, so that every output sees the operations of kernel/matmul.hpp in
// order.
#pragma once

#include "mica/kernel/xsimd/panel.hpp"

namespace mica::kernel::xsimd {

/// Tokens of the widest tile: a sum, an accumulator and an output each, 24 of 32 registers or 12 of 16. On
/// Arm the operations of a dot need the other registers.
template <class A>
inline constexpr std::size_t tile_tokens = std::is_base_of_v<::xsimd::avx512f, A> ? 8 : 4;

/// One vector for each token of a tile.
template <class V, std::size_t tokens>
using TileOf = V[tokens];

/// Integer sums of a group of 4 * n values, from line `first` on.
template <PanelShape shape, std::size_t n, class A, std::size_t tokens>
[[gnu::always_inline]] inline void dot_group(const Panel& w, std::size_t r, std::size_t first,
                                             const TokenChunk* x, TileOf<VI<A>, tokens>& sum) noexcept {
  constexpr std::size_t group = 4 * n;
  unrolled<tokens>([&](auto t) { sum[t] = VI<A>(shape.has_bias ? x[t].start[4 * first / group] : 0); });
  unrolled<n>([&](auto q) {
    const VU8<A> line = VU8<A>::load_unaligned(w.lines[first + q][r]);
    unrolled<tokens>([&](auto t) {
      sum[t] = dot4<shape.with_sign, A>(line, broadcast4<A>(x[t].codes + 4 * (first + q)), sum[t]);
    });
  });
}

/// acc and the weighted sums of 32 values s: exact, or rounded once (format/concept.hpp).
template <PanelShape shape, class A, std::size_t tokens>
[[gnu::always_inline]] inline void add_sums(const Panel& w, std::size_t r, std::size_t s, const TokenChunk* x,
                                            TileOf<VF<A>, tokens>& acc) noexcept {
  constexpr std::size_t groups = 32 / shape.group, n = shape.group / 4;
  VI<A> sum[tokens];
  VF<A> isum[tokens];
  dot_group<shape, n, A>(w, r, 8 * s, x, sum);
  unrolled<tokens>([&](auto t) {
    isum[t] = ::xsimd::to_float(sum[t]);
    if constexpr (shape.has_scales) isum[t] = isum[t] * VF<A>::load_unaligned(w.scales.scale[groups * s] + r);
  });
  if constexpr (groups == 2) {
    dot_group<shape, n, A>(w, r, 8 * s + 4, x, sum);
    const VF<A> scale = VF<A>::load_unaligned(w.scales.scale[2 * s + 1] + r);
    unrolled<tokens>([&](auto t) { isum[t] = fma<A>(::xsimd::to_float(sum[t]), scale, isum[t]); });
  }
  unrolled<tokens>([&](auto t) { acc[t] = fma<A>(VF<A>(x[t].scale[s]), isum[t], acc[t]); });
}

/// Adds n blocks of sixteen rows to y[16 t], t < tokens. Token t's chunk is x[t].
template <PanelShape shape, class A, std::size_t tokens>
[[gnu::noinline, gnu::flatten]] void multiply_tile(const Panel& w, std::size_t n, const TokenChunk* x,
                                                   float* y) noexcept {
  constexpr std::size_t sums = shape.block_size / 32, groups = shape.block_size / shape.group;
  for (std::size_t r = 0; r < panel_rows; r += lanes<A>) {
    VF<A> product[tokens], acc[tokens];
    unrolled<tokens>([&](auto t) { product[t] = VF<A>::load_unaligned(y + panel_rows * t + r); });
    for (std::size_t b = 0; b < n; ++b) {
      unrolled<tokens>([&](auto t) { acc[t] = VF<A>(0.0f); });
      for (std::size_t s = b * sums; s < (b + 1) * sums; ++s) add_sums<shape, A>(w, r, s, x, acc);
      const VF<A> d = VF<A>::load_unaligned(w.scales.d[b] + r);
      unrolled<tokens>([&](auto t) { product[t] = fma<A>(d, acc[t], product[t]); });
      if constexpr (shape.has_mins) {
        unrolled<tokens>([&](auto t) { acc[t] = VF<A>(0.0f); });
        for (std::size_t g = b * groups; g < (b + 1) * groups; ++g) {
          const VF<A> min = VF<A>::load_unaligned(w.scales.min[g] + r);
          unrolled<tokens>([&](auto t) { acc[t] = fma<A>(min, VF<A>(x[t].min_factor[g]), acc[t]); });
        }
        const VF<A> minus_dmin = VF<A>::load_unaligned(w.scales.minus_dmin[b] + r);
        unrolled<tokens>([&](auto t) { product[t] = fma<A>(minus_dmin, acc[t], product[t]); });
      }
    }
    unrolled<tokens>([&](auto t) { product[t].store_unaligned(y + panel_rows * t + r); });
  }
}

/// The same for any number of tokens.
template <PanelShape shape, class A>
void multiply(const Panel& w, std::size_t n, const TokenChunk* x, std::size_t tokens, float* y) noexcept {
  const auto some = [&](auto width) {
    for (; tokens >= width; tokens -= width, x += width, y += width * panel_rows)
      multiply_tile<shape, A, width>(w, n, x, y);
  };
  some(std::integral_constant<std::size_t, tile_tokens<A>>());
  if constexpr (tile_tokens < A >> 4) some(std::integral_constant<std::size_t, 4>());
  some(std::integral_constant<std::size_t, 2>());
  some(std::integral_constant<std::size_t, 1>());
}

}  // namespace mica::kernel::xsimd
