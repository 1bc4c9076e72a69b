// SPDX-License-Identifier: Apache-2.0
//
// Per target: attention of some rows over one chunk. Scores have tokens in lanes, values have dimensions in lanes, so
// neither sums across lanes. Rows share what is loaded and converted; a row never reads a tile that it does not see.

#if defined(MICA_KERNEL_HIGHWAY_ATTENTION_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_KERNEL_HIGHWAY_ATTENTION_INL_HPP
#undef MICA_KERNEL_HIGHWAY_ATTENTION_INL_HPP
#else
#define MICA_KERNEL_HIGHWAY_ATTENTION_INL_HPP
#endif

#include "mica/kernel/highway/elementwise-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace mica::kernel::highway {
inline namespace MICA_ABI {
namespace HWY_NAMESPACE {
#if MICA_VECTORS

/// A KV element of plain numbers, and the type of its numbers.
template <class E>
inline constexpr bool is_real_element = !std::is_same_v<E, format::Q8_0>;

/// Tokens of tile `tile` that a row sees, as slots.
struct Slots {
  std::size_t first;
  std::size_t last;

  [[nodiscard]] bool none() const { return first >= last; }
  [[nodiscard]] bool all() const { return first == 0 && last == 16; }
};

HWY_INLINE Slots slots_in(const Visible& v, std::size_t tile) {
  const std::size_t begin = tile * 16;
  const auto slot = [&](std::size_t j) { return j < begin ? 0 : HWY_MIN(j - begin, std::size_t{16}); };
  return {slot(v.first), slot(v.last)};
}

/// Tiles that a row may see: [first, last).
HWY_INLINE std::size_t first_tile(const Visible& v) { return v.first / 16u; }
HWY_INLINE std::size_t last_tile(const Visible& v) {
  return v.empty() ? v.first / 16u : (v.last + 15u) / 16u;
}

HWY_INLINE hn::Mask<DF> mask_of(const Slots& s, std::size_t part) {
  const VI slot = hn::Iota(DI(), static_cast<std::int32_t>(part * lanes));
  const auto from = hn::Ge(slot, hn::Set(DI(), static_cast<std::int32_t>(s.first)));
  const auto to = hn::Lt(slot, hn::Set(DI(), static_cast<std::int32_t>(s.last)));
  return hn::RebindMask(DF(), hn::And(from, to));
}

/// The visible scores of one tile.
HWY_INLINE void store_scores(const VF* scores, const Slots& s, float* p) {
  for (std::size_t part = 0; part < parts; ++part) {
    if (s.all()) {
      hn::StoreU(scores[part], DF(), p + part * lanes);
    } else {
      hn::BlendedStore(scores[part], mask_of(s, part), DF(), p + part * lanes);
    }
  }
}

// ---- scores of real elements

/// Rows [row, row + rows) with `tiles` consecutive tiles; q[i] * key[i] in order of i.
template <std::size_t rows, std::size_t tiles, class T>
HWY_INLINE void real_scores(const AttentionArgs& a, const std::size_t* row, const std::size_t* tile) {
  const DF d;
  VF c[rows][tiles][parts];
  const float* q[rows];
  const T* keys[tiles];
  for (std::size_t r = 0; r < rows; ++r) q[r] = a.q[row[r]].data();
  for (std::size_t t = 0; t < tiles; ++t) keys[t] = reinterpret_cast<const T*>(a.tiles[tile[t]]);
  MICA_UNROLL
  for (std::size_t r = 0; r < rows; ++r) {
    MICA_UNROLL
    for (std::size_t t = 0; t < tiles; ++t) {
      MICA_UNROLL
      for (std::size_t part = 0; part < parts; ++part) c[r][t][part] = hn::Zero(d);
    }
  }
  for (std::size_t i = 0; i < a.head_dim; ++i) {
    MICA_UNROLL
    for (std::size_t t = 0; t < tiles; ++t) {
      MICA_UNROLL
      for (std::size_t part = 0; part < parts; ++part) {
        const VF key = load(keys[t] + i * 16 + part * lanes);
        MICA_UNROLL
        for (std::size_t r = 0; r < rows; ++r)
          c[r][t][part] = hn::MulAdd(hn::Set(d, q[r][i]), key, c[r][t][part]);
      }
    }
  }
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t t = 0; t < tiles; ++t) {
      for (std::size_t part = 0; part < parts; ++part)
        c[r][t][part] = hn::Mul(c[r][t][part], hn::Set(d, a.scale));
      store_scores(c[r][t], slots_in(a.visible[row[r]], tile[t]), a.p[row[r]].data() + tile[t] * 16);
    }
  }
}

/// What some rows see of a chunk: the tiles that at least one of them reads.
struct SeenTiles {
  std::size_t tile[chunk_tiles];
  std::size_t count = 0;
};

HWY_INLINE SeenTiles seen_by(const AttentionArgs& a, const std::size_t* row, std::size_t rows) {
  SeenTiles seen;
  for (std::size_t t = 0; t < chunk_tiles; ++t) {
    bool any = false;
    for (std::size_t r = 0; r < rows; ++r) any = any || !slots_in(a.visible[row[r]], t).none();
    if (any) seen.tile[seen.count++] = t;
  }
  return seen;
}

template <std::size_t rows, class T>
HWY_NOINLINE void real_scores_of_rows(const AttentionArgs& a, const std::size_t* row) {
  // Eight sums hide the latency of the multiply-add.
  constexpr std::size_t tiles = HWY_MAX(std::size_t{1}, 8 / (rows * parts));
  const SeenTiles seen = seen_by(a, row, rows);
  std::size_t t = 0;
  for (; t + tiles <= seen.count; t += tiles) real_scores<rows, tiles, T>(a, row, seen.tile + t);
  for (; t < seen.count; ++t) real_scores<rows, 1, T>(a, row, seen.tile + t);
}

// ---- scores of Q8_0: sixteen-bit products of neighbouring dimensions

struct IntegerQuery {
  std::int16_t code[max_head_dim];  // padded with zeros to a multiple of four
  float scale;
};

inline void quantize_query(const float* q, std::size_t head_dim, IntegerQuery& out) {
  std::int32_t bits = 0;
  for (std::size_t i = 0; i < head_dim; ++i)
    bits = HWY_MAX(bits, std::bit_cast<std::int32_t>(q[i]) & 0x7FFFFFFF);
  const float amax = std::bit_cast<float>(bits);
  const bool finite = bits < 0x7F800000;
  const bool zero = !finite || amax < 1e-30f;
  std::fill_n(out.code, (head_dim + 3) / 4 * 4, std::int16_t{0});
  out.scale = !finite ? std::bit_cast<float>(0x7FC00000u) : zero ? 0.0f : amax / 16383.0f;
  if (zero) return;
  const float inverse = 16383.0f / amax;
  const hn::Rebind<std::int16_t, DF> d16;
  std::size_t i = 0;
  for (; i + lanes <= head_dim; i += lanes) {
    const VI code = hn::NearestInt(hn::Mul(load(q + i), hn::Set(DF(), inverse)));
    hn::StoreU(hn::DemoteTo(d16, code), d16, out.code + i);
  }
  for (; i < head_dim; ++i) out.code[i] = static_cast<std::int16_t>(std::nearbyint(q[i] * inverse));
}

/// One tile for `rows` rows: every four dimensions, a token has two sums of two products.
template <std::size_t rows>
HWY_INLINE void q8_scores(const AttentionArgs& a, const std::size_t* row, const IntegerQuery* q,
                          std::size_t tile) {
  using D8 = hn::Rebind<std::int8_t, DI16>;
  const hn::Repartition<std::int64_t, DI16> d64;
  const DF d;
  constexpr std::size_t tokens = lanes / 2;  // in one vector of 16-bit numbers
  constexpr std::size_t vectors = 16 / tokens;
  const std::byte* const bytes = a.tiles[tile];
  VI sum[rows][vectors], more[rows][vectors];
  MICA_UNROLL
  for (std::size_t r = 0; r < rows; ++r) {
    MICA_UNROLL
    for (std::size_t v = 0; v < vectors; ++v) sum[r][v] = more[r][v] = hn::Zero(DI());
  }
  for (std::size_t i = 0; i < a.head_dim; i += 4) {
    const auto* const codes = reinterpret_cast<const std::int8_t*>(bytes) + i * 16;
    VI16 four[rows];
    MICA_UNROLL
    for (std::size_t r = 0; r < rows; ++r) {
      std::int64_t dims;
      hwy::CopyBytes<8>(q[r].code + i, &dims);
      four[r] = hn::BitCast(DI16(), hn::Set(d64, dims));
    }
    MICA_UNROLL
    for (std::size_t v = 0; v < vectors; ++v) {
      const VI16 keys = hn::PromoteTo(DI16(), hn::LoadU(D8(), codes + v * tokens * 4));
      MICA_UNROLL
      for (std::size_t r = 0; r < rows; ++r) {
        sum[r][v] = hn::ReorderWidenMulAccumulate(DI(), keys, four[r], sum[r][v], more[r][v]);
      }
    }
  }
  const Half* const scales = format::Q8_0::scales(bytes, a.head_dim);
  for (std::size_t r = 0; r < rows; ++r) {
    VF scores[parts];
    for (std::size_t part = 0; part < parts; ++part) {
      const VI low = hn::RearrangeToOddPlusEven(sum[r][2 * part], more[r][2 * part]);
      const VI high = hn::RearrangeToOddPlusEven(sum[r][2 * part + 1], more[r][2 * part + 1]);
      const VI total = hn::Add(hn::ConcatEven(DI(), high, low), hn::ConcatOdd(DI(), high, low));
      const VF scaled = hn::Mul(hn::ConvertTo(d, total), hn::Set(d, q[r].scale * a.scale));
      scores[part] = hn::Mul(scaled, load(scales + part * lanes));
    }
    store_scores(scores, slots_in(a.visible[row[r]], tile), a.p[row[r]].data() + tile * 16);
  }
}

template <std::size_t rows>
HWY_NOINLINE void q8_scores_of_rows(const AttentionArgs& a, const std::size_t* row) {
  IntegerQuery q[rows];
  for (std::size_t r = 0; r < rows; ++r) quantize_query(a.q[row[r]].data(), a.head_dim, q[r]);
  const SeenTiles seen = seen_by(a, row, rows);
  for (std::size_t t = 0; t < seen.count; ++t) q8_scores<rows>(a, row, q, seen.tile[t]);
}

template <std::size_t rows, KvElement E>
HWY_INLINE void scores_of_rows(const AttentionArgs& a, const std::size_t* row) {
  if constexpr (is_real_element<E>) {
    real_scores_of_rows<rows, typename E::Block>(a, row);
  } else {
    q8_scores_of_rows<rows>(a, row);
  }
}

template <KvElement E>
void attention_scores(const AttentionArgs& a) {
  std::size_t row[4];
  std::size_t count = 0;
  for (std::size_t r = 0; r < a.q.rows(); ++r) {
    if (a.visible[r].empty()) continue;
    row[count++] = r;
    if (count == 4) {
      scores_of_rows<4, E>(a, row);
      count = 0;
    }
  }
  if (count >= 2) scores_of_rows<2, E>(a, row);
  if (count % 2 == 1) scores_of_rows<1, E>(a, row + count - 1);
}

// ---- softmax

/// The greatest of p in [first, last), as comparisons in order find it: a NaN in front stays, others are passed over.
inline float largest(const float* p, std::size_t first, std::size_t last) {
  const DF d;
  VF top = hn::Set(d, p[first]);
  std::size_t j = first;
  for (; j + lanes <= last; j += lanes) {
    const VF v = load(p + j);
    top = hn::IfThenElse(hn::Gt(v, top), v, top);
  }
  alignas(64) float m[lanes];
  hn::Store(top, d, m);
  float best = m[0];
  for (std::size_t i = 1; i < lanes; ++i) best = m[i] > best ? m[i] : best;
  for (; j < last; ++j) best = p[j] > best ? p[j] : best;
  // Of zeros with different signs the first one counts.
  for (std::size_t i = first; best == 0 && i < last; ++i) {
    if (p[i] == 0) return p[i];
  }
  return best;
}

inline void attention_softmax(const AttentionArgs& a) {
  const DF d;
  for (std::size_t r = 0; r < a.q.rows(); ++r) {
    const Visible v = a.visible[r];
    if (v.empty()) continue;
    float* const p = a.p[r].data();
    if (a.softcap != 0) softcap_run(p + v.first, v.last - v.first, a.softcap);
    const float m = largest(p, v.first, v.last);
    VF c[parts];
    for (std::size_t part = 0; part < parts; ++part) c[part] = hn::Zero(d);
    for (std::size_t tile = first_tile(v); tile < last_tile(v); ++tile) {
      const Slots s = slots_in(v, tile);
      for (std::size_t part = 0; part < parts; ++part) {
        float* const at = p + tile * 16 + part * lanes;
        if (s.all()) {
          const VF e = exp_lanes(hn::Sub(load(at), hn::Set(d, m)));
          hn::StoreU(e, d, at);
          c[part] = hn::Add(c[part], e);
        } else {
          const auto mask = mask_of(s, part);
          const VF e = exp_lanes(hn::Sub(hn::MaskedLoad(mask, d, at), hn::Set(d, m)));
          hn::BlendedStore(e, mask, d, at);
          c[part] = hn::IfThenElse(mask, hn::Add(c[part], e), c[part]);
        }
      }
    }
    a.max[r] = m;
    a.sum[r] = tree(c);
  }
}

// ---- values

template <class E>
struct ValueType {
  using type = typename E::Block;
};
template <>
struct ValueType<format::Q8_0> {
  using type = std::int8_t;
};

/// A tile's numbers, its tokens' scales (1 for real elements), and where one token's numbers begin.
template <KvElement E>
struct ValueTile {
  using T = typename ValueType<E>::type;
  const T* values;
  std::size_t stride;
  float scale[16];

  HWY_INLINE ValueTile(const AttentionArgs& a, std::size_t tile) {
    const std::byte* const bytes = a.tiles[tile] + a.value_offset;
    values = reinterpret_cast<const T*>(bytes);
    stride = a.head_dim;
    if constexpr (!is_real_element<E>) {
      stride = E::padded(a.head_dim);
      for (std::size_t i = 0; i < 16; i += lanes)
        hn::StoreU(load(E::scales(bytes, a.head_dim) + i), DF(), scale + i);
    }
  }
  HWY_INLINE float weight(float p, std::size_t slot) const {
    if constexpr (is_real_element<E>) return p;
    return p * scale[slot];
  }
};
template <std::size_t rows, std::size_t vectors, KvElement E>
HWY_INLINE void add_values(const ValueTile<E>& tile, const float (&weights)[rows][16], const Slots& s,
                           std::size_t i, float* const (&out)[rows]) {
  const DF d;
  VF c[rows][vectors];
  MICA_UNROLL
  for (std::size_t r = 0; r < rows; ++r) {
    MICA_UNROLL
    for (std::size_t v = 0; v < vectors; ++v) c[r][v] = load(out[r] + i + v * lanes);
  }
  for (std::size_t j = s.first; j < s.last; ++j) {
    MICA_UNROLL
    for (std::size_t v = 0; v < vectors; ++v) {
      const VF value = load(tile.values + j * tile.stride + i + v * lanes);
      MICA_UNROLL
      for (std::size_t r = 0; r < rows; ++r) c[r][v] = hn::MulAdd(hn::Set(d, weights[r][j]), value, c[r][v]);
    }
  }
  MICA_UNROLL
  for (std::size_t r = 0; r < rows; ++r) {
    MICA_UNROLL
    for (std::size_t v = 0; v < vectors; ++v) hn::StoreU(c[r][v], d, out[r] + i + v * lanes);
  }
}

/// The tokens [s.first, s.last) of one tile for rows that all see them.
template <std::size_t rows, KvElement E>
HWY_NOINLINE void add_tile(const AttentionArgs& a, std::size_t row, std::size_t tile, const Slots& s) {
  const ValueTile<E> values(a, tile);
  float weights[rows][16];
  float* out[rows];
  for (std::size_t r = 0; r < rows; ++r) {
    out[r] = a.out[row + r].data();
    const float* const p = a.p[row + r].data() + tile * 16;
    for (std::size_t j = s.first; j < s.last; ++j) weights[r][j] = values.weight(p[j], j);
  }
  // Eight sums hide the latency of the multiply-add.
  constexpr std::size_t vectors = 8 / rows;
  std::size_t i = 0;
  for (; i + vectors * lanes <= a.head_dim; i += vectors * lanes)
    add_values<rows, vectors, E>(values, weights, s, i, out);
  for (; i + lanes <= a.head_dim; i += lanes) add_values<rows, 1, E>(values, weights, s, i, out);
  if (i == a.head_dim) return;
  for (std::size_t j = s.first; j < s.last; ++j) {
    const std::size_t count = a.head_dim - i;
    alignas(64) float numbers[lanes];
    hn::Store(load_first(values.values + j * values.stride + i, count), DF(), numbers);
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t k = 0; k < count; ++k)
        out[r][i + k] = std::fma(weights[r][j], numbers[k], out[r][i + k]);
    }
  }
}

/// Tiles that all rows see whole are shared; the others are taken row by row. Tokens stay in order for every row.
template <std::size_t rows, KvElement E>
HWY_INLINE void values_of_rows(const AttentionArgs& a, std::size_t row) {
  for (std::size_t tile = 0; tile < chunk_tiles; ++tile) {
    bool shared = true;
    for (std::size_t r = 0; r < rows; ++r) shared = shared && slots_in(a.visible[row + r], tile).all();
    if (shared) {
      add_tile<rows, E>(a, row, tile, {0, 16});
      continue;
    }
    for (std::size_t r = 0; r < rows; ++r) {
      const Slots s = slots_in(a.visible[row + r], tile);
      if (!s.none()) add_tile<1, E>(a, row + r, tile, s);
    }
  }
}

template <KvElement E>
void attention_values(const AttentionArgs& a) {
  const std::size_t n = a.q.rows();
  for (std::size_t r = 0; r < n; ++r) std::fill_n(a.out[r].data(), a.head_dim, 0.0f);
  std::size_t r = 0;
  for (; r + 4 <= n; r += 4) values_of_rows<4, E>(a, r);
  for (; r + 2 <= n; r += 2) values_of_rows<2, E>(a, r);
  for (; r < n; ++r) values_of_rows<1, E>(a, r);
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
  const DF d;
  const std::size_t n = state.out.cols();
  for (std::size_t r = 0; r < state.out.rows(); ++r) {
    float* const out = state.out[r].data();
    const float inverse = 1.0f / state.sum[r];
    std::size_t i = 0;
    for (; i + lanes <= n; i += lanes) hn::StoreU(hn::Mul(load(out + i), hn::Set(d, inverse)), d, out + i);
    for (; i < n; ++i) out[i] *= inverse;
  }
}

#else

template <KvElement E>
void attention_scores(const AttentionArgs& a) {
  scalar::attention_scores<E>(a);
}
template <KvElement E>
void attention_values(const AttentionArgs& a) {
  scalar::attention_values<E>(a);
}
inline void attention_softmax(const AttentionArgs& a) { scalar::attention_softmax(a); }
inline void attention_merge(const AttentionArgs& a, const AttentionState& state) {
  scalar::attention_merge(a, state);
}
inline void attention_finish(const AttentionState& state) { scalar::attention_finish(state); }

#endif  // MICA_VECTORS
}  // namespace HWY_NAMESPACE
}  // namespace MICA_ABI
}  // namespace mica::kernel::highway
HWY_AFTER_NAMESPACE();
#endif
