// SPDX-License-Identifier: Apache-2.0
//
// Per target: attention over keys and values of signed bytes where queries and weights have one byte too
// (AttentionArgs::fast8), by dots of four bytes. Keys lie as [four dimensions][16 tokens][4], values as [four
// tokens][dimension][4]; the integers of a row are broadcast, so that no sum crosses lanes. Targets other
// than AVX-512 with VNNI, and heads whose width is no multiple of 16, take the kernels for integers of 16
// bits, which find the same sums.

#if defined(MICA_KERNEL_HIGHWAY_ATTENTION_BYTES_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_KERNEL_HIGHWAY_ATTENTION_BYTES_INL_HPP
#undef MICA_KERNEL_HIGHWAY_ATTENTION_BYTES_INL_HPP
#else
#define MICA_KERNEL_HIGHWAY_ATTENTION_BYTES_INL_HPP
#endif

#include "mica/kernel/highway/attention_q8_0-inl.hpp"
#include "mica/kernel/highway/dots-inl.hpp"

#if MICA_VECTORS
HWY_BEFORE_NAMESPACE();
namespace MICA_PER_TARGET {

/// Dots of unsigned and signed bytes, with a tile's tokens in one vector.
inline constexpr bool byte_attention = target_quads && HWY_ARCH_X86 && lanes == 16;

HWY_INLINE bool by_bytes(const AttentionArgs& a) {
  return byte_attention && a.fast8 && a.head_dim % lanes == 0;
}

/// Integers of a row in one byte each.
struct ByteRow {
  alignas(64) std::uint8_t code[max_head_dim];
  float scale;
  std::int32_t start;  // of a query's sums: keys are multiplied as code + 128
};

inline void query_bytes(const AttentionArgs& a, std::size_t row, ByteRow& out) {
  const float* const q = a.q[row].data();
  const IntegerScale how(largest_bits(q, a.head_dim), fast8_query_top);
  out.scale = how.scale;
  out.start = 0;
  if (how.inverse == 0) return static_cast<void>(std::fill_n(out.code, a.head_dim, std::uint8_t{0}));
  const VF factor = hn::Set(DF(), how.inverse);
  VI sum = hn::Zero(DI());
  for (std::size_t i = 0; i < a.head_dim; i += lanes) {
    const VI bits = rounded_bits(load(q + i), factor);
    sum = hn::Add(sum, integers_of(bits));
    store_lowest_bytes(bits, out.code + i);
  }
  out.start = -128 * hn::ReduceSum(DI(), sum);
}

/// Some rows with some tiles.
template <std::size_t rows, std::size_t tiles>
HWY_INLINE void byte_scores(const AttentionArgs& a, const std::size_t* row, const ByteRow* q,
                            const std::size_t* tile) {
  const DF d;
  VI sum[rows][tiles];
  const std::uint8_t* keys[tiles];
  std::size_t ahead[tiles];
  MICA_UNROLL
  for (std::size_t t = 0; t < tiles; ++t) {
    keys[t] = reinterpret_cast<const std::uint8_t*>(a.tiles[tile[t]]);
    ahead[t] = distance_ahead(a, tile[t], row[0] < 4);
    MICA_UNROLL
    for (std::size_t r = 0; r < rows; ++r) sum[r][t] = hn::Set(DI(), q[r].start);
  }
  for (std::size_t i = 0; i < a.head_dim; i += 4) {
    VU8 key[tiles];
    MICA_UNROLL
    for (std::size_t t = 0; t < tiles; ++t) {
      if (ahead[t] != 0) prefetch(keys[t] + 16 * i, ahead[t]);
      key[t] = hn::Xor(hn::LoadU(DU8(), keys[t] + 16 * i), hn::Set(DU8(), 0x80));
    }
    MICA_UNROLL
    for (std::size_t r = 0; r < rows; ++r) {
      const VI8 four = hn::BitCast(DI8(), broadcast4(reinterpret_cast<const std::int8_t*>(q[r].code + i)));
      MICA_UNROLL
      for (std::size_t t = 0; t < tiles; ++t) sum[r][t] = dot_quads(key[t], four, sum[r][t]);
    }
  }
  VF scales[tiles];
  MICA_UNROLL
  for (std::size_t t = 0; t < tiles; ++t)
    scales[t] = load(format::Q8_0::scales(a.tiles[tile[t]], a.head_dim));
  MICA_UNROLL
  for (std::size_t r = 0; r < rows; ++r) {
    float* const p = a.p[row[r]].data();
    const Visible v = a.visible[row[r]];
    const bool all = v.first <= 16 * tile[0] && v.last >= 16 * (tile[tiles - 1] + 1);  // tiles are in order
    const VF scale = hn::Set(d, q[r].scale * a.scale);
    MICA_UNROLL
    for (std::size_t t = 0; t < tiles; ++t) {
      const VF scores = hn::Mul(hn::Mul(hn::ConvertTo(d, sum[r][t]), scale), scales[t]);
      if (all) {
        hn::StoreU(scores, d, p + tile[t] * 16);
      } else {
        store_scores(scores, slots_in(v, tile[t]), 0, p + tile[t] * 16);
      }
    }
  }
}

template <std::size_t rows>
HWY_NOINLINE void byte_scores_of_rows(const AttentionArgs& a, const std::size_t* row) {
  constexpr std::size_t together = 16 / rows / 4 * 4;  // tiles: sixteen sums, or twelve of three rows
  ByteRow q[rows];
  for (std::size_t r = 0; r < rows; ++r) query_bytes(a, row[r], q[r]);
  const SeenTiles seen = seen_by(a, row, rows);
  std::size_t t = 0;
  for (; t + together <= seen.count; t += together) byte_scores<rows, together>(a, row, q, seen.tile + t);
  for (; t < seen.count; ++t) byte_scores<rows, 1>(a, row, q, seen.tile + t);
}

/// The weights of a row in one byte; 0 for tokens that it does not see.
inline void byte_weights(const AttentionArgs& a, std::size_t row, const ValueScales& scale, ByteRow& out) {
  const DF d;
  const Visible& seen = a.visible[row];
  const float* const p = a.p[row].data();
  alignas(64) float weight[chunk_tokens];
  const std::size_t first = first_tile(seen) * 16, last = last_tile(seen) * 16;
  const auto cut = [&](std::size_t j, VF w) HWY_ATTR {
    const Slots slots = slots_in(seen, j / 16);
    return slots.all() ? w : hn::IfThenElseZero(mask_of(slots, 0), w);
  };
  VI largest = hn::Zero(DI());
  for (std::size_t j = first; j < last; j += lanes) {
    VF w = hn::Mul(load(p + j), hn::Load(d, scale.of + j));
    if (j == first || j + lanes == last) w = cut(j, w);
    hn::Store(w, d, weight + j);
    largest = hn::Max(largest, hn::BitCast(DI(), hn::Abs(w)));
  }
  const IntegerScale how(hn::ReduceMax(DI(), largest), fast8_weight_top);
  out.scale = how.scale;
  if (how.inverse == 0) return static_cast<void>(std::fill_n(out.code, chunk_tokens, std::uint8_t{0}));
  if (first != 0) std::fill_n(out.code, first, std::uint8_t{0});
  if (last != chunk_tokens) std::fill_n(out.code + last, chunk_tokens - last, std::uint8_t{0});
  const VF factor = hn::Set(d, how.inverse);
  for (std::size_t j = first; j < last; j += lanes)
    store_lowest_bytes(rounded_bits(hn::Load(d, weight + j), factor), out.code + j);
}

/// Numbers [first, first + vectors * lanes) of the outputs.
template <std::size_t rows, std::size_t vectors>
HWY_INLINE void add_byte_values(const AttentionArgs& a, const std::size_t* row, const SeenTiles& seen,
                                const ByteRow* w, std::size_t first) {
  const DF d;
  VI sum[rows][vectors];
  clear(sum);
  for (std::size_t t = 0; t < seen.count; ++t) {
    const std::size_t tile = seen.tile[t], ahead = distance_ahead(a, tile, row[0] < 4);
    const auto* values = reinterpret_cast<const std::int8_t*>(a.tiles[tile] + a.value_offset) + first * 4;
    for (std::size_t slot = 0; slot < 16; slot += 4, values += a.head_dim * 4) {
      VI8 value[vectors];
      MICA_UNROLL
      for (std::size_t v = 0; v < vectors; ++v) {
        if (ahead != 0) prefetch(values + 64 * v, ahead);
        value[v] = hn::LoadU(DI8(), values + 64 * v);
      }
      MICA_UNROLL
      for (std::size_t r = 0; r < rows; ++r) {
        const auto* const weights = reinterpret_cast<const std::int8_t*>(w[r].code + tile * 16 + slot);
        const VU8 four = hn::BitCast(DU8(), broadcast4(weights));
        MICA_UNROLL
        for (std::size_t v = 0; v < vectors; ++v) sum[r][v] = dot_quads(four, value[v], sum[r][v]);
      }
    }
  }
  MICA_UNROLL
  for (std::size_t r = 0; r < rows; ++r) {
    MICA_UNROLL
    for (std::size_t v = 0; v < vectors; ++v) {
      float* const out = a.out[row[r]].data() + first + v * lanes;
      hn::StoreU(hn::MulAdd(hn::ConvertTo(d, sum[r][v]), hn::Set(d, w[r].scale), load(out)), d, out);
    }
  }
}

template <std::size_t rows>
HWY_NOINLINE void byte_values_of_rows(const AttentionArgs& a, const std::size_t* row) {
  ByteRow w[rows];
  const SeenTiles seen = seen_by(a, row, rows);
  const ValueScales scales(a, seen);
  for (std::size_t r = 0; r < rows; ++r) byte_weights(a, row[r], scales, w[r]);
  std::size_t i = 0;
  for (; i + 4 * lanes <= a.head_dim; i += 4 * lanes) add_byte_values<rows, 4>(a, row, seen, w, i);
  for (; i + 2 * lanes <= a.head_dim; i += 2 * lanes) add_byte_values<rows, 2>(a, row, seen, w, i);
  for (; i < a.head_dim; i += lanes) add_byte_values<rows, 1>(a, row, seen, w, i);
}

}  // namespace MICA_PER_TARGET
HWY_AFTER_NAMESPACE();
#endif  // MICA_VECTORS
#endif
