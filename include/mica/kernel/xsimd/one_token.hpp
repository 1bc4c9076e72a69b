// SPDX-License-Identifier: Apache-2.0
//
// Packed rows times one token: lines go from memory to the dots, without a panel. The operations are those of
// tiles.hpp.
#pragma once

#include "mica/kernel/xsimd/fill.hpp"

namespace mica::kernel::xsimd {

/// Bytes of a group of as many rows as a vector has lanes.
template <class F, class A>
inline constexpr std::size_t group_bytes = lanes<A> * sizeof(typename F::Block) * F::group / F::block_size;

/// The integer sum of group g of a chunk, whose codes begin with value `first` of period s. Prefetches as
/// many bytes from `ahead` on as the group has, a cache line with a dot: bursts let memory rest (design note
/// 0004).
template <class F, class A, std::size_t first>
VF<A> sum_group(const std::uint8_t* codes, std::size_t s, std::size_t g, const std::uint8_t* ahead,
                const TokenChunk& token) noexcept {
  constexpr PanelShape shape = shape_of<A, F>;
  const std::int8_t* const x = token.codes + F::group * g;
  const VU8<A> offset(shape.with_sign ? static_cast<std::uint8_t>(F::code_offset) : std::uint8_t{0});
  VI<A> sum(shape.has_bias ? token.start[g] : 0);
  unrolled<F::group / 4>([&](auto q) {
    if constexpr (64 * q < group_bytes<F, A>) prefetch(ahead, 64 * q);
    const VU8<A> line = Codec<F>::template line<A, first + 4 * q>(codes, s) - offset;
    sum = dot4<shape.with_sign, A>(line, broadcast4<A>(x + 4 * q), sum);
  });
  return ::xsimd::to_float(sum);
}

/// Adds the weighted sum of 32 values of a chunk, from value 32 at on, to acc.
template <class F, class A, std::size_t first>
void add_sum(const std::uint8_t* codes, std::size_t s, std::size_t at, const std::uint8_t* ahead,
             const PanelScales& w, std::size_t r, const TokenChunk& token, VF<A>& acc) noexcept {
  constexpr std::size_t groups = 32 / F::group;
  VF<A> isum = sum_group<F, A, first>(codes, s, groups * at, ahead, token);
  if constexpr (shape_of<A, F>.has_scales) isum = isum * VF<A>::load_unaligned(w.scale[groups * at] + r);
  if constexpr (groups == 2) {
    const VF<A> second = sum_group<F, A, first + 16>(codes, s, 2 * at + 1, ahead + group_bytes<F, A>, token);
    isum = fma<A>(second, VF<A>::load_unaligned(w.scale[2 * at + 1] + r), isum);
  }
  acc = fma<A>(VF<A>(token.scale[at]), isum, acc);
}

/// Adds n blocks of sixteen rows to y[16].
template <class F, class A>
[[gnu::noinline, gnu::flatten]] void multiply_one(const PackedBlocks& w, std::size_t n,
                                                  const TokenChunk& token, float* y) noexcept {
  constexpr std::size_t period = Codec<F>::period, groups = F::block_size / F::group;
  PanelScales scales;
  for (std::size_t b = 0; b < n; ++b) {
    const std::uint8_t* const scale_bytes = w.scales + panel_rows * Rows16::scale_bytes<F> * b;
    for (std::size_t r = 0; r < panel_rows; r += lanes<A>) {
      const std::uint8_t* const codes = w.codes + panel_rows * F::code_bytes * b + 4 * r;
      const std::uint8_t* const ahead = w.ahead + sizeof(typename F::Block) * (panel_rows * b + r);
      Codec<F>::template scales<A>(scale_bytes, b, r, scales);
      VF<A> acc(0.0f);
      for (std::size_t s = 0; s < F::block_size / period; ++s) {
        unrolled<period / 32>([&](auto i) {
          const std::size_t at = period / 32 * s + i;
          add_sum<F, A, 32 * i>(codes, s, F::block_size / 32 * b + at,
                                ahead + 32 / F::group * group_bytes<F, A> * at, scales, r, token, acc);
        });
      }
      VF<A> product = fma<A>(VF<A>::load_unaligned(scales.d[b] + r), acc, VF<A>::load_unaligned(y + r));
      if constexpr (F::has_mins) {
        acc = VF<A>(0.0f);
        for (std::size_t g = groups * b; g < groups * (b + 1); ++g)
          acc = fma<A>(VF<A>::load_unaligned(scales.min[g] + r), VF<A>(token.min_factor[g]), acc);
        product = fma<A>(VF<A>::load_unaligned(scales.minus_dmin[b] + r), acc, product);
      }
      product.store_unaligned(y + r);
    }
  }
}

}  // namespace mica::kernel::xsimd
