// SPDX-License-Identifier: Apache-2.0
//
// Per target: attention over keys and values of signed bytes. What a sum runs over lies in fours, dimensions
// of keys and tokens of values, and is multiplied by integers of sixteen bits, a query's or a row's weights;
// columns have tokens of keys in lanes, or dimensions of values.

#if defined(MICA_KERNEL_HIGHWAY_ATTENTION_Q8_0_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_KERNEL_HIGHWAY_ATTENTION_Q8_0_INL_HPP
#undef MICA_KERNEL_HIGHWAY_ATTENTION_Q8_0_INL_HPP
#else
#define MICA_KERNEL_HIGHWAY_ATTENTION_Q8_0_INL_HPP
#endif

#include "mica/kernel/highway/attention_tiles-inl.hpp"

#if MICA_VECTORS
HWY_BEFORE_NAMESPACE();
namespace MICA_PER_TARGET {

/// The sums of some rows' integers with signed bytes, [four][column][4]; a Block is as many columns as a
/// vector of floats has lanes. Its bytes fill two vectors of 16-bit numbers for every four, in which a column
/// has two sums of two products.
template <std::size_t rows, std::size_t blocks>
class FourSums {
 public:
  HWY_INLINE FourSums() {
    clear(sum_);
    clear(more_);
  }
  /// Adds the products of integers [i, i + 4) of each row with the fours at `bytes` of each block.
  HWY_INLINE void add(const IntegerRow* row, std::size_t i, const std::int8_t* const* bytes,
                      const std::size_t* ahead) {
    using D8 = hn::Rebind<std::int8_t, DI16>;
    const hn::Repartition<std::int64_t, DI16> d64;
    VI16 four[rows];
    MICA_UNROLL
    for (std::size_t r = 0; r < rows; ++r) {
      std::int64_t integers;
      hwy::CopyBytes<8>(row[r].code + i, &integers);
      four[r] = hn::BitCast(DI16(), hn::Set(d64, integers));
    }
    MICA_UNROLL
    for (std::size_t b = 0; b < blocks; ++b) {
      prefetch(bytes[b], ahead[b]);
      MICA_UNROLL
      for (std::size_t v = 0; v < 2; ++v) {
        const VI16 column = hn::PromoteTo(DI16(), hn::LoadU(D8(), bytes[b] + v * 2 * lanes));
        MICA_UNROLL
        for (std::size_t r = 0; r < rows; ++r) {
          sum_[r][b][v] = hn::ReorderWidenMulAccumulate(DI(), column, four[r], sum_[r][b][v], more_[r][b][v]);
          keep(sum_[r][b][v]);
        }
      }
    }
  }
  /// The sums of a block's columns.
  HWY_INLINE VI total(std::size_t r, std::size_t b) const {
    const VI low = hn::RearrangeToOddPlusEven(sum_[r][b][0], more_[r][b][0]);
    const VI high = hn::RearrangeToOddPlusEven(sum_[r][b][1], more_[r][b][1]);
    return hn::Add(hn::ConcatEven(DI(), high, low), hn::ConcatOdd(DI(), high, low));
  }

 private:
  VI sum_[rows][blocks][2], more_[rows][blocks][2];
};

/// Two multipliers with a latency of four or five: as many sums as the registers hold beside columns and
/// rows.
template <std::size_t rows>
inline constexpr std::size_t blocks_together = (rows <= 2 ? 2 : 1) * (HWY_TARGET <= HWY_AVX3 ? 2 : 1);

template <std::size_t rows, std::size_t blocks>
HWY_INLINE void q8_score_blocks(const AttentionArgs& a, const std::size_t* row, const IntegerRow* q,
                                const Block* block) {
  const DF d;
  const std::int8_t* keys[blocks];
  std::size_t ahead[blocks];
  for (std::size_t b = 0; b < blocks; ++b) {
    keys[b] = reinterpret_cast<const std::int8_t*>(a.tiles[block[b].tile]) + block[b].part * 4 * lanes;
    ahead[b] = distance_ahead(a, block[b].tile, row[0] < 4);
  }
  FourSums<rows, blocks> sums;
  for (std::size_t i = 0; i < a.head_dim; i += 4) {
    sums.add(q, i, keys, ahead);
    MICA_UNROLL
    for (std::size_t b = 0; b < blocks; ++b) keys[b] += 64;
  }
  MICA_UNROLL
  for (std::size_t b = 0; b < blocks; ++b) {
    const std::size_t tile = block[b].tile, part = block[b].part;
    const VF scales = load(format::Q8_0::scales(a.tiles[tile], a.head_dim) + part * lanes);
    MICA_UNROLL
    for (std::size_t r = 0; r < rows; ++r) {
      const VF scaled = hn::Mul(hn::ConvertTo(d, sums.total(r, b)), hn::Set(d, q[r].scale * a.scale));
      store_scores(hn::Mul(scaled, scales), slots_in(a.visible[row[r]], tile), part,
                   a.p[row[r]].data() + tile * 16);
    }
  }
}

template <std::size_t rows>
HWY_NOINLINE void q8_scores_of_rows(const AttentionArgs& a, const std::size_t* row) {
  constexpr std::size_t together = blocks_together<rows>;
  IntegerRow q[rows];
  for (std::size_t r = 0; r < rows; ++r) quantize_row(a.q[row[r]].data(), a.head_dim, a.query_max(), q[r]);
  const SeenTiles seen = seen_by(a, row, rows);
  Block block[chunk_tiles * parts];
  const std::size_t count = seen.count * parts;
  for (std::size_t b = 0; b < count; ++b) block[b] = {seen.tile[b / parts], b % parts};
  std::size_t b = 0;
  for (; b + together <= count; b += together) q8_score_blocks<rows, together>(a, row, q, block + b);
  for (; b < count; ++b) q8_score_blocks<rows, 1>(a, row, q, block + b);
}

/// The scales of a chunk's values as floats; tiles that no row sees have none.
struct ValueScales {
  alignas(64) float of[chunk_tokens];

  HWY_INLINE ValueScales(const AttentionArgs& a, const SeenTiles& seen) {
    for (std::size_t t = 0; t < seen.count; ++t) {
      const std::size_t tile = seen.tile[t];
      const Half* const scales = format::Q8_0::scales(a.tiles[tile] + a.value_offset, a.head_dim);
      for (std::size_t part = 0; part < parts; ++part)
        hn::Store(load(scales + part * lanes), DF(), of + tile * 16 + part * lanes);
    }
  }
};

/// What a row multiplies the codes of each token of a chunk by; 0 where it sees none.
inline void q8_weights(const AttentionArgs& a, std::size_t row, const ValueScales& scale, IntegerRow& out) {
  const DF d;
  const Visible& seen = a.visible[row];
  alignas(64) float weight[chunk_tokens];
  const std::size_t first = first_tile(seen) * 16, last = last_tile(seen) * 16;
  for (std::size_t j = first; j < last; j += lanes)
    hn::Store(hn::Mul(load(a.p[row].data() + j), hn::Load(d, scale.of + j)), d, weight + j);
  std::fill_n(weight, seen.first, 0.0f);
  std::fill_n(weight + seen.last, chunk_tokens - seen.last, 0.0f);
  quantize_row(weight, chunk_tokens, a.weight_max(), out);
}

/// The sums of `blocks` Blocks of dimensions, the first of which begins at `first`, to sums[row][dimension].
template <std::size_t rows, std::size_t blocks>
HWY_INLINE void q8_value_blocks(const AttentionArgs& a, std::size_t row, const SeenTiles& seen,
                                const IntegerRow* w, std::size_t first, std::int32_t (*out)[max_head_dim]) {
  const std::size_t four_bytes = format::Q8_0::padded(a.head_dim) * 4;
  FourSums<rows, blocks> sums;
  for (std::size_t t = 0; t < seen.count; ++t) {
    const std::size_t tile = seen.tile[t];
    const std::int8_t* values[blocks];
    std::size_t ahead[blocks];
    MICA_UNROLL
    for (std::size_t b = 0; b < blocks; ++b) {
      values[b] =
          reinterpret_cast<const std::int8_t*>(a.tiles[tile] + a.value_offset) + (first + b * lanes) * 4;
      ahead[b] = distance_ahead(a, tile, row < 4);
    }
    for (std::size_t slot = 0; slot < 16; slot += 4) {
      sums.add(w, tile * 16 + slot, values, ahead);
      MICA_UNROLL
      for (std::size_t b = 0; b < blocks; ++b) values[b] += four_bytes;
    }
  }
  MICA_UNROLL
  for (std::size_t r = 0; r < rows; ++r) {
    MICA_UNROLL
    for (std::size_t b = 0; b < blocks; ++b) hn::StoreU(sums.total(r, b), DI(), out[r] + first + b * lanes);
  }
}

/// The same of dimensions [0, head_dim), fewer than fill a vector.
template <std::size_t rows>
HWY_INLINE void q8_few_values(const AttentionArgs& a, const SeenTiles& seen, const IntegerRow* w,
                              std::int32_t (*out)[max_head_dim]) {
  for (std::size_t r = 0; r < rows; ++r) {
    std::fill_n(out[r], a.head_dim, 0);
    for (std::size_t t = 0; t < seen.count; ++t) {
      const auto* const values = reinterpret_cast<const std::int8_t*>(a.tiles[seen.tile[t]] + a.value_offset);
      for (std::size_t slot = 0; slot < 16; ++slot) {
        for (std::size_t i = 0; i < a.head_dim; ++i) {
          const std::size_t at = format::Q8_0::Values::place(slot, i, format::Q8_0::padded(a.head_dim));
          out[r][i] += w[r].code[seen.tile[t] * 16 + slot] * values[at];
        }
      }
    }
  }
}

/// A row's outputs of a chunk from its integer sums.
inline void q8_outputs(const std::int32_t* sums, float scale, std::size_t n, float* out) {
  const DF d;
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const VF sum = hn::ConvertTo(d, hn::LoadU(DI(), sums + i));
    hn::StoreU(hn::MulAdd(sum, hn::Set(d, scale), load(out + i)), d, out + i);
  }
  for (; i < n; ++i) out[i] = std::fma(static_cast<float>(sums[i]), scale, out[i]);
}

template <std::size_t rows>
HWY_NOINLINE void q8_values_of_rows(const AttentionArgs& a, const std::size_t* row) {
  constexpr std::size_t together = blocks_together<rows>;
  IntegerRow w[rows];
  std::int32_t sums[rows][max_head_dim];
  const SeenTiles seen = seen_by(a, row, rows);
  const ValueScales scales(a, seen);
  for (std::size_t r = 0; r < rows; ++r) q8_weights(a, row[r], scales, w[r]);
  if (a.head_dim < lanes) {
    q8_few_values<rows>(a, seen, w, sums);
  } else {
    std::size_t i = 0;
    for (; i + together * lanes <= a.head_dim; i += together * lanes)
      q8_value_blocks<rows, together>(a, row[0], seen, w, i, sums);
    for (; i + lanes <= a.head_dim; i += lanes) q8_value_blocks<rows, 1>(a, row[0], seen, w, i, sums);
    // The last dimensions with some before them, whose sums become what they are.
    if (i < a.head_dim) q8_value_blocks<rows, 1>(a, row[0], seen, w, a.head_dim - lanes, sums);
  }
  for (std::size_t r = 0; r < rows; ++r) q8_outputs(sums[r], w[r].scale, a.head_dim, a.out[row[r]].data());
}

// ---- storing

/// The scales of up to 16 heads, and what their numbers are multiplied by: 0 where all codes are.
struct HeadScales {
  alignas(64) std::int32_t largest[16] = {};  // bits of the largest magnitude of each
  alignas(64) float inverse[16];
  alignas(64) Half scale[16];

  /// From `largest`.
  HWY_INLINE void find() {
    const DF d;
    const hn::Rebind<hwy::float16_t, DF> dh;
    const hn::Rebind<std::uint16_t, DF> d16;
    for (std::size_t i = 0; i < 16; i += lanes) {
      const VI bits = hn::Load(DI(), largest + i);
      const VF exact = hn::Div(hn::BitCast(d, bits), hn::Set(d, 127.0f));
      const auto finite = hn::RebindMask(d, hn::Lt(bits, hn::Set(DI(), infinite_bits)));
      auto* const to = reinterpret_cast<std::uint16_t*>(scale + i);
      if constexpr (converts_halves) {
        const VF or_nan = hn::IfThenElse(finite, exact, hn::BitCast(d, hn::Set(DI(), 0x7FC00000)));
        hn::StoreU(hn::BitCast(d16, hn::DemoteTo(dh, or_nan)), d16, to);
      } else {
        alignas(64) float values[lanes];
        hn::Store(exact, d, values);
        for (std::size_t k = 0; k < lanes; ++k) {
          scale[i + k] =
              to_half(largest[i + k] < infinite_bits ? values[k] : std::numeric_limits<float>::quiet_NaN());
        }
      }
      const VF stored = load(scale + i);
      const VF inverse_of = hn::Div(hn::Set(d, 1.0f), stored);
      hn::Store(hn::IfThenElseZero(hn::Gt(stored, hn::Zero(d)), inverse_of), d, inverse + i);
    }
  }
};

/// The codes of a head, and zeros to a multiple of four.
HWY_INLINE void encode_head(const float* x, std::size_t n, float inverse, std::int8_t* code) {
  const std::size_t padded = format::Q8_0::padded(n);
  if (inverse == 0) return static_cast<void>(std::fill_n(code, padded, std::int8_t{0}));
  const VF factor = hn::Set(DF(), inverse);
  const hn::Repartition<std::int16_t, DF> d16;
  const hn::Rebind<std::int8_t, decltype(d16)> d8;
  const auto top = hn::Set(d16, 127);
  std::size_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const VI low = hn::NearestInt(hn::Mul(load(x + i), factor));
    const VI high = hn::NearestInt(hn::Mul(load(x + i + lanes), factor));
    const auto both = hn::OrderedDemote2To(d16, low, high);
    hn::StoreU(hn::DemoteTo(d8, hn::Max(hn::Min(both, top), hn::Neg(top))), d8, code + i);
  }
  for (; i < n; ++i) {
    const float rounded = std::nearbyint(x[i] * inverse);
    code[i] = static_cast<std::int8_t>(HWY_MAX(HWY_MIN(rounded, 127.0f), -127.0f));
  }
  for (; i < padded; ++i) code[i] = 0;
}

/// Four tokens of a tile's values, of which the first slot is a multiple of four.
inline void store_four_values(const std::int8_t (&code)[4][max_head_dim], std::size_t dims, std::int8_t* to) {
  const hn::CappedTag<std::int8_t, 16> d;
  constexpr std::size_t step = hn::MaxLanes(d);
  std::size_t i = 0;
  for (; i + step <= dims; i += step) {
    hn::StoreInterleaved4(hn::LoadU(d, code[0] + i), hn::LoadU(d, code[1] + i), hn::LoadU(d, code[2] + i),
                          hn::LoadU(d, code[3] + i), d, to + 4 * i);
  }
  for (; i < dims; ++i) {
    for (std::size_t k = 0; k < 4; ++k) to[4 * i + k] = code[k][i];
  }
}

/// Tokens of one tile.
inline void store_bytes(const StoreArgs& a) {
  using format::Q8_0;
  const std::size_t n = a.x.rows(), dims = a.x.cols(), padded = Q8_0::padded(dims);
  auto* const codes = reinterpret_cast<std::int8_t*>(a.tile);
  HeadScales scales;
  for (std::size_t i = 0; i < n; ++i) scales.largest[i] = largest_bits(a.x[i].data(), dims);
  scales.find();
  std::copy_n(scales.scale, n, const_cast<Half*>(Q8_0::scales(a.tile, dims)) + a.slot);
  std::int8_t code[4][max_head_dim];
  for (std::size_t i = 0; i < n;) {
    const std::size_t slot = a.slot + i, together = a.values && slot % 4 == 0 && i + 4 <= n ? 4 : 1;
    for (std::size_t k = 0; k < together; ++k)
      encode_head(a.x[i + k].data(), dims, scales.inverse[i + k], code[k]);
    if (together == 4) {
      store_four_values(code, padded, codes + slot * padded);
    } else if (a.values) {
      for (std::size_t k = 0; k < padded; ++k) codes[Q8_0::Values::place(slot, k, padded)] = code[0][k];
    } else {
      for (std::size_t k = 0; k < padded; k += 4)
        std::memcpy(codes + Q8_0::Keys::place(slot, k, padded), code[0] + k, 4);
    }
    i += together;
  }
}

}  // namespace MICA_PER_TARGET
HWY_AFTER_NAMESPACE();
#endif  // MICA_VECTORS
#endif
