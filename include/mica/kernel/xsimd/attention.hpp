// SPDX-License-Identifier: Apache-2.0
//
// Attention over elements that decode to floats, in vectors: lanes are tokens for scores and dimensions for
// values. Each tile is decoded once for all rows of a call.
#pragma once

#include "mica/format/float.hpp"
#include "mica/kernel/scalar/attention.hpp"
#include "mica/kernel/xsimd/vectors.hpp"

namespace mica::kernel::xsimd {

/// Whether attention over E is computed here.
template <class E>
inline constexpr bool attends =
    !std::is_same_v<E, format::Q8_0> && !format::is_block_element<E> && !KvTileElement<E>;

/// keys[i][slot], of the slots of a tile that `seen` allows; what others become does not matter.
template <class A, KvReadable E, class Seen>
void load_keys(const std::byte* tile, std::size_t head_dim, const Seen& seen,
               float (*keys)[format::tile_tokens]) noexcept {
  if constexpr (is_plain<E>) {
    widen<A>(reinterpret_cast<const typename E::Block*>(tile), head_dim * format::tile_tokens, keys[0]);
  } else {
    float key[max_head_dim];
    for (std::size_t slot = 0; slot < format::tile_tokens; ++slot) {
      std::fill_n(key, head_dim, 0.0f);
      if (seen(slot)) E::load_key(tile, slot, head_dim, key);
      for (std::size_t i = 0; i < head_dim; ++i) keys[i][slot] = key[i];
    }
  }
}
template <class A, KvReadable E>
void load_value(const std::byte* tile, std::size_t slot, std::size_t head_dim, float* value) noexcept {
  if constexpr (is_plain<E>) {
    widen<A>(reinterpret_cast<const typename E::Block*>(tile) + slot * head_dim, head_dim, value);
  } else {
    E::load_value(tile, slot, head_dim, value);
  }
}

/// A tile is decoded once for all rows.
template <class A, KvReadable E>
void attention_scores(const AttentionArgs& a) noexcept {
  alignas(64) float keys[max_head_dim][format::tile_tokens];
  for (std::size_t begin = 0; begin < chunk_tokens; begin += format::tile_tokens) {
    const auto sees = [&](std::size_t r, std::size_t slot) {
      return a.visible[r].first <= begin + slot && begin + slot < a.visible[r].last;
    };
    const auto seen = [&](std::size_t slot) {
      for (std::size_t r = 0; r < a.q.rows(); ++r) {
        if (sees(r, slot)) return true;
      }
      return false;
    };
    bool any = false;
    for (std::size_t slot = 0; slot < format::tile_tokens && !any; ++slot) any = seen(slot);
    if (!any) continue;
    load_keys<A, E>(a.tiles[begin / format::tile_tokens], a.head_dim, seen, keys);
    for (std::size_t r = 0; r < a.q.rows(); ++r) {
      for (std::size_t first = 0; first < format::tile_tokens; first += lanes<A>) {
        VF<A> c(0.0f);
        for (std::size_t i = 0; i < a.head_dim; ++i)
          c = fma<A>(VF<A>(a.q[r][i]), load<A>(keys[i] + first), c);
        float scores[lanes<A>];
        (c * VF<A>(a.scale)).store_unaligned(scores);
        for (std::size_t i = 0; i < lanes<A>; ++i) {
          if (sees(r, first + i)) a.p[r][begin + first + i] = scores[i];
        }
      }
    }
  }
}

template <class A>
void attention_softmax(const AttentionArgs& a) noexcept {
  if (a.fast8) return scalar::attention_softmax(a);
  for (std::size_t r = 0; r < a.q.rows(); ++r) {
    if (a.visible[r].empty()) continue;
    const std::size_t first = a.visible[r].first, last = a.visible[r].last;
    float* const p = a.p[r].data();
    if (a.softcap != 0) {
      const float inverse = 1.0f / a.softcap;
      for (std::size_t j = first; j < last; ++j) p[j] = a.softcap * tanh(p[j] * inverse);
    }
    float m = p[first];
    for (std::size_t j = first; j < last; ++j) m = p[j] > m ? p[j] : m;
    std::size_t j = first;
    for (; j + lanes<A> <= last; j += lanes<A>) exp<A>(load<A>(p + j) - VF<A>(m)).store_unaligned(p + j);
    for (; j < last; ++j) p[j] = kernel::exp(p[j] - m);
    scalar::Chains sum;
    for (j = first; j < last; ++j) sum.add(j, p[j]);
    a.max[r] = m;
    a.sum[r] = sum.tree();
  }
}

/// A value is decoded once for all rows.
template <class A, KvReadable E>
void attention_values(const AttentionArgs& a) noexcept {
  alignas(64) float value[max_head_dim];
  std::size_t begin = chunk_tokens, end = 0;
  for (std::size_t r = 0; r < a.q.rows(); ++r) {
    scalar::begin_values(a, r, false);
    if (a.visible[r].empty()) continue;
    begin = std::min<std::size_t>(begin, a.visible[r].first);
    end = std::max<std::size_t>(end, a.visible[r].last);
  }
  for (std::size_t j = begin; j < end; ++j) {
    bool loaded = false;
    for (std::size_t r = 0; r < a.q.rows(); ++r) {
      if (j < a.visible[r].first || j >= a.visible[r].last) continue;
      if (!loaded) {
        load_value<A, E>(a.tiles[j / format::tile_tokens] + a.value_offset, j % format::tile_tokens,
                         a.head_dim, value);
        loaded = true;
      }
      float* const out = a.out[r].data();
      const float p = a.p[r][j];
      std::size_t i = 0;
      for (; i + lanes<A> <= a.head_dim; i += lanes<A>)
        fma<A>(VF<A>(p), load<A>(value + i), load<A>(out + i)).store_unaligned(out + i);
      for (; i < a.head_dim; ++i) out[i] = std::fma(p, value[i], out[i]);
    }
  }
}

}  // namespace mica::kernel::xsimd
