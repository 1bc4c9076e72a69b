// SPDX-License-Identifier: Apache-2.0
//
// Per target: attention of some rows over one chunk. Scores have tokens in lanes, values have dimensions in
// lanes, so neither sums across lanes. Up to eight rows share what is loaded and converted; a row never reads
// a tile that it does not see. The first read of a tile prefetches the same bytes of the tile a chunk later:
// without that a core computes and waits in turns, and the bus is idle half of the time.

#if defined(MICA_KERNEL_HIGHWAY_ATTENTION_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_KERNEL_HIGHWAY_ATTENTION_INL_HPP
#undef MICA_KERNEL_HIGHWAY_ATTENTION_INL_HPP
#else
#define MICA_KERNEL_HIGHWAY_ATTENTION_INL_HPP
#endif

#include "mica/kernel/highway/attention_blocks-inl.hpp"
#include "mica/kernel/highway/attention_bytes-inl.hpp"
#include "mica/kernel/highway/attention_kivi-inl.hpp"
#include "mica/kernel/highway/attention_kvarn-inl.hpp"
#include "mica/kernel/highway/attention_matrix-inl.hpp"
#include "mica/kernel/highway/attention_q8_0-inl.hpp"
#include "mica/kernel/highway/attention_tiles-inl.hpp"
#include "mica/kernel/highway/elementwise-inl.hpp"
#include "mica/kernel/highway/store_blocks-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace MICA_PER_TARGET {
#if MICA_VECTORS

/// A KV element of plain numbers, and the type of its numbers.
template <class E>
inline constexpr bool is_real_element =
    !std::is_same_v<E, format::Q8_0> && !format::is_block_element<E> && !KvTileElement<E>;

// ---- scores of real elements

/// `rows` rows with `tiles` tiles; q[i] * key[i] in order of i.
template <std::size_t rows, std::size_t tiles, class T>
HWY_INLINE void real_scores(const AttentionArgs& a, const std::size_t* row, const std::size_t* tile) {
  const DF d;
  VF c[rows][tiles][parts];
  const float* q[rows];
  const T* keys[tiles];
  std::size_t ahead[tiles];
  for (std::size_t r = 0; r < rows; ++r) q[r] = a.q[row[r]].data();
  for (std::size_t t = 0; t < tiles; ++t) {
    keys[t] = reinterpret_cast<const T*>(a.tiles[tile[t]]);
    ahead[t] = distance_ahead(a, tile[t], row[0] < 4);
  }
  clear(c);
  for (std::size_t i = 0; i < a.head_dim; ++i) {
    MICA_UNROLL
    for (std::size_t t = 0; t < tiles; ++t) {
      if (ahead[t] != 0) prefetch(keys[t] + i * 16, ahead[t]);
      MICA_UNROLL
      for (std::size_t part = 0; part < parts; ++part) {
        const VF key = load(keys[t] + i * 16 + part * lanes);
        MICA_UNROLL
        for (std::size_t r = 0; r < rows; ++r)
          c[r][t][part] = hn::MulAdd(hn::Set(d, q[r][i]), key, c[r][t][part]);
      }
    }
  }
  const VF scale = hn::Set(d, a.scale);
  MICA_UNROLL
  for (std::size_t r = 0; r < rows; ++r) {
    float* const p = a.p[row[r]].data();
    const Visible v = a.visible[row[r]];
    const bool all = v.first <= 16 * tile[0] && v.last >= 16 * (tile[tiles - 1] + 1);  // tiles are in order
    MICA_UNROLL
    for (std::size_t t = 0; t < tiles; ++t) {
      MICA_UNROLL
      for (std::size_t part = 0; part < parts; ++part) {
        const VF scores = hn::Mul(c[r][t][part], scale);
        if (all) {
          hn::StoreU(scores, d, p + tile[t] * 16 + part * lanes);
        } else {
          store_scores(scores, slots_in(v, tile[t]), part, p + tile[t] * 16);
        }
      }
    }
  }
}

template <std::size_t rows, class T>
HWY_NOINLINE void real_scores_of_rows(const AttentionArgs& a, const std::size_t* row) {
  // Eight sums hide the latency of the multiply-add; sixteen share what they load, where there are registers.
  constexpr std::size_t sums = many_registers && parts == 1 ? 16 : 8;
  constexpr std::size_t tiles = HWY_MAX(std::size_t{1}, sums / (rows * parts));
  const SeenTiles seen = seen_by(a, row, rows);
  std::size_t t = 0;
  for (; t + tiles <= seen.count; t += tiles) real_scores<rows, tiles, T>(a, row, seen.tile + t);
  for (; t < seen.count; ++t) real_scores<rows, 1, T>(a, row, seen.tile + t);
}

template <std::size_t rows, KvReadable E>
HWY_INLINE void scores_of_rows(const AttentionArgs& a, const std::size_t* row) {
  if constexpr (std::is_same_v<E, format::Q8_0>) {
    q8_scores_of_rows<rows>(a, row);
  } else if constexpr (is_real_element<E>) {
    real_scores_of_rows<rows, typename E::Block>(a, row);
  } else if constexpr (format::is_block_element<E>) {
    block_scores_of_rows<rows, typename E::Format>(a, row, E::rotated);
  } else if constexpr (format::is_kivi<E>) {
    kivi_scores_of_rows<rows, E>(a, row);
  } else {
    kvarn_scores_of_rows<rows, E>(a, row);
  }
}

template <KvReadable E>
void attention_scores(const AttentionArgs& a) {
  if constexpr (std::is_same_v<E, format::Q8_0> && byte_attention) {
    if (by_bytes(a))
      return for_seeing_fours(
          a, [&](auto rows, const std::size_t* row) HWY_ATTR { byte_scores_of_rows<rows>(a, row); });
  }
#if MICA_MATRIX_UNIT
  if constexpr (std::is_same_v<E, format::Q8_0>) {
    if (by_matrix_unit(a)) return for_seeing_rows<paired_rows>(a, matrix_scores_of_rows);
  }
#endif
  for_seeing_fours(a, [&](auto rows, const std::size_t* row) HWY_ATTR { scores_of_rows<rows, E>(a, row); });
}

// ---- softmax

/// The greatest of p in [first, last), as comparisons in order find it: a NaN in front stays, others are
/// passed over.
inline float largest(const float* p, std::size_t first, std::size_t last) {
  const DF d;
  constexpr std::size_t vectors = 4;  // a comparison and a choice follow each other
  VF top[vectors];
  MICA_UNROLL
  for (std::size_t v = 0; v < vectors; ++v) top[v] = hn::Set(d, p[first]);
  std::size_t j = first;
  for (; j + vectors * lanes <= last; j += vectors * lanes) {
    MICA_UNROLL
    for (std::size_t v = 0; v < vectors; ++v) {
      const VF x = load(p + j + v * lanes);
      top[v] = hn::IfThenElse(hn::Gt(x, top[v]), x, top[v]);
    }
  }
  for (; j + lanes <= last; j += lanes)
    top[0] = hn::IfThenElse(hn::Gt(load(p + j), top[0]), load(p + j), top[0]);
  MICA_UNROLL
  for (std::size_t v = 1; v < vectors; ++v) top[0] = hn::IfThenElse(hn::Gt(top[v], top[0]), top[v], top[0]);
  float best = hn::ReduceMax(d, top[0]);  // if one lane is NaN, all are
  for (; j < last; ++j) best = p[j] > best ? p[j] : best;
  // Of zeros with different signs the first one counts.
  for (std::size_t i = first; best == 0 && i < last; ++i) {
    if (p[i] == 0) return p[i];
  }
  return best;
}

/// p = exp(p - m) of what a row sees; the result is the sum.
template <bool quick>
HWY_INLINE float exp_run(float* p, const Visible& v, float m) {
  const DF d;
  const VF top = hn::Set(d, m);
  const auto exp_of = [&](VF x) HWY_ATTR {
    return quick ? quick_exp_lanes(hn::Sub(x, top)) : exp_up_to_zero(hn::Sub(x, top));
  };
  VF c[parts];
  for (std::size_t part = 0; part < parts; ++part) c[part] = hn::Zero(d);
  for (std::size_t tile = first_tile(v); tile < last_tile(v); ++tile) {
    const bool inside = tile * 16 >= v.first && tile * 16 + 16 <= v.last;
    MICA_UNROLL
    for (std::size_t part = 0; part < parts; ++part) {
      float* const at = p + tile * 16 + part * lanes;
      if (inside) {
        const VF e = exp_of(load(at));
        hn::StoreU(e, d, at);
        c[part] = hn::Add(c[part], e);
      } else {
        const auto mask = mask_of(slots_in(v, tile), part);
        const VF e = exp_of(hn::MaskedLoad(mask, d, at));
        hn::BlendedStore(e, mask, d, at);
        c[part] = hn::IfThenElse(mask, hn::Add(c[part], e), c[part]);
      }
    }
  }
  return tree(c);
}

inline void attention_softmax(const AttentionArgs& a) {
  for (std::size_t r = 0; r < a.q.rows(); ++r) {
    const Visible v = a.visible[r];
    if (v.empty()) continue;
    float* const p = a.p[r].data();
    if (a.softcap != 0) softcap_run(p + v.first, v.last - v.first, a.softcap);
    a.max[r] = largest(p, v.first, v.last);
    a.sum[r] = a.fast8 ? exp_run<true>(p, v, a.max[r]) : exp_run<false>(p, v, a.max[r]);
  }
}

// ---- values

/// Tokens that some rows all see, and what each row multiplies their numbers by, (rows, 256).
template <std::size_t rows, KvReadable E>
struct ValueRun {
  using T = typename E::Block;
  const AttentionArgs& a;
  std::size_t row;
  Visible seen;
  const float* weight[rows];
  float* out[rows];

  HWY_INLINE ValueRun(const AttentionArgs& args, std::size_t first_row, const Visible& tokens)
      : a(args), row(first_row), seen(tokens) {
    for (std::size_t r = 0; r < rows; ++r) {
      weight[r] = a.p[row + r].data();
      out[r] = a.out[row + r].data();
    }
  }
  HWY_INLINE const T* values(std::size_t tile) const {
    return reinterpret_cast<const T*>(a.tiles[tile] + a.value_offset);
  }
};

/// Numbers [i, i + vectors * lanes) of the outputs stay in registers while all tokens pass by in order.
template <std::size_t vectors, std::size_t rows, KvReadable E>
HWY_INLINE void add_values(const ValueRun<rows, E>& run, std::size_t i) {
  const DF d;
  VF c[rows][vectors];
  MICA_UNROLL
  for (std::size_t r = 0; r < rows; ++r) {
    MICA_UNROLL
    for (std::size_t v = 0; v < vectors; ++v) c[r][v] = load(run.out[r] + i + v * lanes);
  }
  constexpr std::size_t bytes = vectors * lanes * sizeof(typename ValueRun<rows, E>::T);
  for (std::size_t tile = first_tile(run.seen); tile < last_tile(run.seen); ++tile) {
    const Slots s = slots_in(run.seen, tile);
    const std::size_t ahead = distance_ahead(run.a, tile, run.row == 0);
    const auto* value = run.values(tile) + s.first * run.a.head_dim + i;
    for (std::size_t j = tile * 16 + s.first; j < tile * 16 + s.last; ++j, value += run.a.head_dim) {
      MICA_UNROLL
      for (std::size_t line = 0; ahead != 0 && line < bytes; line += 64) prefetch(value, ahead + line);
      VF weight[rows];
      MICA_UNROLL
      for (std::size_t r = 0; r < rows; ++r) weight[r] = hn::Set(d, run.weight[r][j]);
      MICA_UNROLL
      for (std::size_t v = 0; v < vectors; ++v) {
        const VF number = load(value + v * lanes);
        MICA_UNROLL
        for (std::size_t r = 0; r < rows; ++r) c[r][v] = hn::MulAdd(weight[r], number, c[r][v]);
      }
    }
  }
  MICA_UNROLL
  for (std::size_t r = 0; r < rows; ++r) {
    MICA_UNROLL
    for (std::size_t v = 0; v < vectors; ++v) hn::StoreU(c[r][v], d, run.out[r] + i + v * lanes);
  }
}

/// Numbers [i, head_dim), fewer than fill a vector.
template <std::size_t rows, KvReadable E>
HWY_INLINE void add_last_values(const ValueRun<rows, E>& run, std::size_t i) {
  const std::size_t count = run.a.head_dim - i;
  for (std::size_t j = run.seen.first; j < run.seen.last; ++j) {
    alignas(64) float numbers[lanes];
    hn::Store(load_first(run.values(j / 16) + j % 16 * run.a.head_dim + i, count), DF(), numbers);
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t k = 0; k < count; ++k)
        run.out[r][i + k] = std::fma(run.weight[r][j], numbers[k], run.out[r][i + k]);
    }
  }
}

template <std::size_t rows, KvReadable E>
HWY_INLINE void add_plain_run(const ValueRun<rows, E>& run) {
  // As many sums as the registers hold beside numbers and weights.
  constexpr std::size_t vectors = rows <= 2 || (many_registers && rows <= 4) ? 4 : 2;
  std::size_t i = 0;
  for (; i + vectors * lanes <= run.a.head_dim; i += vectors * lanes) add_values<vectors>(run, i);
  if constexpr (vectors > 2) {  // heads of text encoders are small
    for (; i + 2 * lanes <= run.a.head_dim; i += 2 * lanes) add_values<2>(run, i);
  }
  for (; i + lanes <= run.a.head_dim; i += lanes) add_values<1>(run, i);
  if (i < run.a.head_dim) add_last_values(run, i);
}

template <std::size_t rows, KvReadable E>
HWY_NOINLINE void add_run(const AttentionArgs& a, std::size_t row, const Visible& seen) {
  if (seen.empty()) return;
  if constexpr (format::is_block_element<E>) {
    add_block_run<rows, typename E::Format>(a, row, seen);
  } else if constexpr (format::is_kivi<E>) {
    add_kivi_run<rows, E>(a, row, seen);
  } else if constexpr (format::is_kvarn<E>) {
    add_kvarn_run<rows, E>(a, row, seen);
  } else {
    add_plain_run(ValueRun<rows, E>(a, row, seen));
  }
}

/// Tokens that all rows see are shared; those before and behind are taken row by row. Every row meets its
/// tokens in order.
template <std::size_t rows, KvReadable E>
HWY_INLINE void values_of_rows(const AttentionArgs& a, std::size_t row) {
  const Visible* const v = a.visible + row;
  Visible shared = v[0];
  for (std::size_t r = 1; r < rows; ++r)
    shared = {HWY_MAX(shared.first, v[r].first), HWY_MIN(shared.last, v[r].last)};
  if (shared.empty()) {
    for (std::size_t r = 0; r < rows; ++r) add_run<1, E>(a, row + r, v[r]);
    return;
  }
  for (std::size_t r = 0; r < rows; ++r) add_run<1, E>(a, row + r, {v[r].first, shared.first});
  add_run<rows, E>(a, row, shared);
  for (std::size_t r = 0; r < rows; ++r) add_run<1, E>(a, row + r, {shared.last, v[r].last});
}

inline void q8_values(const AttentionArgs& a) {
  if constexpr (byte_attention) {
    if (by_bytes(a))
      return for_seeing_fours(
          a, [&](auto rows, const std::size_t* row) HWY_ATTR { byte_values_of_rows<rows>(a, row); });
  }
#if MICA_MATRIX_UNIT
  if (by_matrix_unit(a)) return for_seeing_rows<rows_of_columns>(a, matrix_values_of_rows);
#endif
  for_seeing_fours(a, [&](auto rows, const std::size_t* row) HWY_ATTR { q8_values_of_rows<rows>(a, row); });
}

template <KvReadable E>
void attention_values(const AttentionArgs& a) {
  const std::size_t n = a.q.rows();
  for (std::size_t r = 0; r < n; ++r) {
    float* const out = a.out[r].data();
    if (!a.adds) {
      std::fill_n(out, a.head_dim, 0.0f);
    } else if constexpr (format::is_block_element<E>) {
      if (E::rotated && !a.visible[r].empty()) rotate_head(out, a.head_dim, out);
    } else if constexpr (format::is_kvarn<E>) {
      if (!a.visible[r].empty()) rotate_head(out, a.head_dim, out);
    }
  }
  if constexpr (std::is_same_v<E, format::Q8_0>) {
    q8_values(a);
  } else {
    std::size_t r = 0;
    // Of small heads, eight rows have as many sums as four rows of others.
    if constexpr (is_real_element<E> && many_registers && parts == 1) {
      for (; a.head_dim <= 2 * lanes && r + 8 <= n; r += 8) values_of_rows<8, E>(a, r);
    }
    for (; r + 4 <= n; r += 4) values_of_rows<4, E>(a, r);
    if (r < n) with_constant<3>(n - r, [&](auto rows) HWY_ATTR { values_of_rows<rows, E>(a, r); });
  }
  if constexpr (format::is_block_element<E>) finish_block_values<typename E::Format>(a, E::rotated);
  if constexpr (format::is_kivi<E>) finish_kivi_values<E>(a);
  if constexpr (format::is_kvarn<E>) finish_kvarn_values(a);
}

// ---- merge and finish

inline void merge_row(float* total, const float* now, float before, float weight, std::size_t n) {
  const DF d;
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const VF product = hn::Mul(load(now + i), hn::Set(d, weight));
    hn::StoreU(hn::MulAdd(load(total + i), hn::Set(d, before), product), d, total + i);
  }
  for (; i < n; ++i) total[i] = std::fma(total[i], before, now[i] * weight);
}

inline void attention_merge(const AttentionArgs& a, const AttentionState& state) {
  for (std::size_t r = 0; r < a.q.rows(); ++r) {
    if (a.visible[r].empty()) continue;
    float& max = state.max[r];
    float& sum = state.sum[r];
    if (max == -std::numeric_limits<float>::infinity()) {
      max = a.max[r];
      sum = a.sum[r];
      std::copy_n(a.out[r].data(), a.head_dim, state.out[r].data());
      continue;
    }
    const float top = a.max[r] > max ? a.max[r] : max;
    const float before = kernel::exp(max - top), now = kernel::exp(a.max[r] - top);
    max = top;
    sum = std::fma(sum, before, a.sum[r] * now);
    merge_row(state.out[r].data(), a.out[r].data(), before, now, a.head_dim);
  }
}

inline void attention_finish(const AttentionState& state) {
  for (std::size_t r = 0; r < state.out.rows(); ++r) {
    float* const out = state.out[r].data();
    const float inverse = 1.0f / state.sum[r];
    scale_row(out, state.out.cols(), inverse, out);
  }
}

template <class E>
void store(const StoreArgs& a) {
  if constexpr (std::is_same_v<E, format::Q8_0>) {
    store_bytes(a);
  } else {
    store_blocks<E>(a);
  }
}

#else

template <KvReadable E>
void attention_scores(const AttentionArgs& a) {
  scalar::attention_scores<E>(a);
}
template <KvReadable E>
void attention_values(const AttentionArgs& a) {
  scalar::attention_values<E>(a);
}
inline void attention_softmax(const AttentionArgs& a) { scalar::attention_softmax(a); }
inline void attention_merge(const AttentionArgs& a, const AttentionState& state) {
  scalar::attention_merge(a, state);
}
inline void attention_finish(const AttentionState& state) { scalar::attention_finish(state); }
template <class E>
void store(const StoreArgs& a) {
  scalar::store<E>(a);
}

#endif  // MICA_VECTORS
}  // namespace MICA_PER_TARGET
HWY_AFTER_NAMESPACE();
#endif
