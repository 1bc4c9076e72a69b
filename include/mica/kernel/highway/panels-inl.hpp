// SPDX-License-Identifier: Apache-2.0
//
// Per target: what products of many tokens are made of, whatever layout the weights have. Lanes are rows.
// Sixteen rows of a chunk are a panel of lines, [k / 4][16 rows][4], which a source fills; tokens come in
// blocks, whose activations of a chunk are gathered once.

#if defined(MICA_KERNEL_HIGHWAY_PANELS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_KERNEL_HIGHWAY_PANELS_INL_HPP
#undef MICA_KERNEL_HIGHWAY_PANELS_INL_HPP
#else
#define MICA_KERNEL_HIGHWAY_PANELS_INL_HPP
#endif

#include "mica/kernel/highway/codec-inl.hpp"

#if MICA_VECTORS
HWY_BEFORE_NAMESPACE();
namespace MICA_PER_TARGET {

/// What the machine's dots add for every x code, to be taken away again.
template <IntegerFormat F>
inline constexpr std::int32_t bias = signed_codes<F::code_max, quads<F>> ? 0 : F::code_offset;

/// What is taken from code + code_offset for the machine's dot.
template <IntegerFormat F>
inline constexpr auto machine_offset = static_cast<std::uint8_t>(F::code_offset - bias<F>);

/// Codes as the machine's dot wants them.
template <IntegerFormat F>
HWY_INLINE VU8 machine_codes(VU8 codes) {
  return machine_offset<F> == 0 ? codes : hn::Sub(codes, hn::Set(DU8(), machine_offset<F>));
}

/// Code + code_offset again.
template <IntegerFormat F>
HWY_INLINE VU8 unsigned_codes(VU8 codes) {
  return machine_offset<F> == 0 ? codes : hn::Add(codes, hn::Set(DU8(), machine_offset<F>));
}

/// Activations of one token, at the start of a chunk.
struct TokenChunk {
  const std::int8_t* codes;
  const float* scales;
  const std::int16_t* sums;
  std::size_t values;  // to the end of the row
};

HWY_INLINE TokenChunk chunk_of(const QuantizedRows& x, std::size_t token, std::size_t k) {
  return {x.row_codes(token) + k, x.row_scales(token) + k / 32, x.row_sums(token) + k / 16, x.cols - k};
}

/// One chunk of sixteen rows.
template <IntegerFormat F>
struct Panel {
  alignas(64) std::uint8_t lines[Chunk<F>::values / 4][panel_rows][4];
  ChunkScales<F> scales;

  /// Sets rows [r, r + lanes) of the line of values [4 * line, 4 * line + 4) to code + code_offset.
  HWY_INLINE void set(std::size_t line, std::size_t r, VU8 codes) {
    hn::Store(machine_codes<F>(codes), DU8(), lines[line][r]);
  }
  /// What was set.
  [[nodiscard]] HWY_INLINE VU8 get(std::size_t line, std::size_t r) const {
    return unsigned_codes<F>(hn::Load(DU8(), lines[line][r]));
  }
};

/// Lines of the first `values` of sixteen rows, a multiple of 16, from code + code_offset in the order of
/// rows.
template <IntegerFormat F>
HWY_INLINE void set_lines(const std::uint8_t (&codes)[panel_rows][Chunk<F>::values], std::size_t values,
                          Panel<F>& panel) {
  for (std::size_t k = 0; k < values; k += 16) {
    const auto at = [&](std::size_t r) { return reinterpret_cast<const std::int32_t*>(codes[r] + k); };
    for (std::size_t r = 0; r < panel_rows; r += lanes) {
      VI word[4];
      load_words(at, r, word);
      MICA_UNROLL
      for (std::size_t i = 0; i < 4; ++i) panel.set(k / 4 + i, r, hn::BitCast(DU8(), word[i]));
    }
  }
}

/// Tokens whose activations are gathered together.
template <IntegerFormat F>
inline constexpr std::size_t block_tokens = 96 * 256 / HWY_MAX(std::size_t{256}, Chunk<F>::values);

/// A chunk of the activations of a block of tokens: what a tile broadcasts.
template <IntegerFormat F>
struct TokenBlock {
  alignas(64) std::int8_t codes[block_tokens<F>][Chunk<F>::values];
  float scale[block_tokens<F>][Chunk<F>::values / 32];
  float min_factor[F::has_mins ? block_tokens<F> : 1][Chunk<F>::groups];     // scale * sum of x codes
  std::int32_t start[bias<F> != 0 ? block_tokens<F> : 1][Chunk<F>::groups];  // minus the bias
  std::size_t values;  // to the end of the rows, at most those of a chunk
  // The codes of tokens [0, in_place) are read where they lie, `stride` bytes apart; those of others are
  // copied.
  const std::int8_t* first;
  std::size_t stride;
  std::size_t in_place;
  const std::int8_t* row[block_tokens<F>];  // the codes of each token; padding repeats the last one
  bool starts;                              // whether they are read: the matrix unit multiplies signed codes
  bool first_chunk;                         // of the rows
};

/// Where the factors of one token go, by 32 values and by group; those that a format does without are not
/// touched.
struct TokenFactors {
  float* scale;
  float* min_factor;
  std::int32_t* start;
};

/// The factors of n blocks, group by group.
template <IntegerFormat F>
HWY_INLINE void gather_factors(const TokenChunk& x, std::size_t n, const TokenFactors& out) {
  for (std::size_t s = 0; s < n * F::block_size / 32; ++s) out.scale[s] = x.scales[s];
  for (std::size_t g = 0; (F::has_mins || bias<F> != 0) && g < n * F::block_size / F::group; ++g) {
    std::int32_t sum = x.sums[g * F::group / 16];
    if constexpr (F::group == 32) sum += x.sums[g * F::group / 16 + 1];
    if constexpr (F::has_mins) out.min_factor[g] = x.scales[g * F::group / 32] * static_cast<float>(sum);
    if constexpr (bias<F> != 0) out.start[g] = -bias<F> * sum;
  }
}

/// The same for a whole chunk of 256 values, in vectors.
template <IntegerFormat F>
HWY_INLINE void gather_factors_whole(const TokenChunk& x, const TokenFactors& out) {
  const hn::CappedTag<float, 8> df;
  const hn::RebindToSigned<decltype(df)> d32;
  const hn::Repartition<std::int16_t, decltype(df)> d16;
  constexpr std::size_t step = hn::MaxLanes(df);
  const auto minus_bias = static_cast<std::int16_t>(-bias<F>);
  MICA_UNROLL
  for (std::size_t s = 0; s < 8; s += step) {
    const auto scale = hn::LoadU(df, x.scales + s);
    const auto sums = hn::LoadU(d16, x.sums + 2 * s);
    hn::StoreU(scale, df, out.scale + s);
    if constexpr (F::has_mins && F::group == 32) {
      const auto sum = hn::ConvertTo(df, hn::WidenMulPairwiseAdd(d32, sums, hn::Set(d16, 1)));
      hn::StoreU(hn::Mul(scale, sum), df, out.min_factor + s);
    } else if constexpr (F::has_mins) {
      const auto low = hn::ConvertTo(df, hn::PromoteLowerTo(d32, sums)),
                 high = hn::ConvertTo(df, hn::PromoteUpperTo(d32, sums));
      float* const factor = out.min_factor + 2 * s;
      hn::StoreU(hn::Mul(hn::InterleaveWholeLower(df, scale, scale), low), df, factor);
      hn::StoreU(hn::Mul(hn::InterleaveWholeUpper(df, scale, scale), high), df, factor + step);
    }
    if constexpr (bias<F> != 0 && F::group == 32) {
      hn::StoreU(hn::WidenMulPairwiseAdd(d32, sums, hn::Set(d16, minus_bias)), d32, out.start + s);
    } else if constexpr (bias<F> != 0) {
      const auto factor = hn::Set(d32, minus_bias);
      hn::StoreU(hn::Mul(hn::PromoteLowerTo(d32, sums), factor), d32, out.start + 2 * s);
      hn::StoreU(hn::Mul(hn::PromoteUpperTo(d32, sums), factor), d32, out.start + 2 * s + step);
    }
  }
}

/// The sum of n <= 16 sums of codes.
HWY_INLINE std::int32_t sum_of(const std::int16_t* sums, std::size_t n) {
  const hn::CappedTag<std::int16_t, 16> d16;
  const hn::RepartitionToWide<decltype(d16)> d32;
  if (n < 16) return std::accumulate(sums, sums + n, 0);
  auto sum = hn::Zero(d32);
  MICA_UNROLL
  for (std::size_t i = 0; i < 16; i += hn::MaxLanes(d16))
    sum = hn::Add(sum, hn::WidenMulPairwiseAdd(d32, hn::LoadU(d16, sums + i), hn::Set(d16, 1)));
  return hn::ReduceSum(d32, sum);
}

/// 256 codes, and those of the next chunk are asked for.
HWY_INLINE void copy_codes(const TokenChunk& x, std::int8_t* out) {
  MICA_UNROLL
  for (std::size_t k = 0; k < 256; k += 4 * lanes) {
    prefetch(x.codes, 256 + k);
    hn::Store(hn::LoadU(DI8(), x.codes + k), DI8(), out + k);
  }
  prefetch(x.scales, 64);
  prefetch(x.sums, 64);
}

/// n blocks of one token; of one that is read in place, the factors alone.
template <IntegerFormat F>
HWY_INLINE void gather_token(const TokenChunk& x, std::size_t t, std::size_t n, TokenBlock<F>& out) {
  const TokenFactors factors{out.scale[t], out.min_factor[F::has_mins ? t : 0],
                             out.start[bias<F> != 0 ? t : 0]};
  if (Chunk<F>::values != 256 || n != Chunk<F>::blocks) {
    if (t >= out.in_place) std::copy_n(x.codes, n * F::block_size, out.codes[t]);
    return gather_factors<F>(x, n, factors);
  }
  if (t >= out.in_place) copy_codes(x, out.codes[t]);
  gather_factors_whole<F>(x, factors);
}

/// What is gathered of a block of tokens.
struct Gather {
  std::size_t padded;    // tokens, the last one repeated
  std::size_t in_place;  // of them, those whose codes are read where they lie
  bool starts;
};

/// n blocks from value k on of tokens [first, last).
template <IntegerFormat F>
HWY_INLINE void gather_tokens(const QuantizedRows& x, std::size_t first, std::size_t last, const Gather& how,
                              std::size_t k, std::size_t n, TokenBlock<F>& out) {
  out.values = HWY_MIN(Chunk<F>::values, x.cols - k);
  out.first = x.row_codes(first) + k;
  out.stride = x.cols;
  out.in_place = how.in_place;
  out.starts = how.starts;
  out.first_chunk = k == 0;
  for (std::size_t t = 0; t < how.padded; ++t) {
    const TokenChunk chunk = chunk_of(x, HWY_MIN(first + t, last - 1), k);
    out.row[t] = t < how.in_place ? chunk.codes : out.codes[t];
    gather_token<F>(chunk, t, n, out);
  }
}

}  // namespace MICA_PER_TARGET
HWY_AFTER_NAMESPACE();
#endif  // MICA_VECTORS
#endif
