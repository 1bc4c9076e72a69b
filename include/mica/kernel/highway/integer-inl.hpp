// SPDX-License-Identifier: Apache-2.0
//
// Per target: products with integer formats in the layout of the file. Sixteen rows are computed together,
// and in the float part lanes are rows, so no sum crosses lanes and every output sees the operations of
// kernel/matmul.hpp in order.
//
//   few tokens    lanes are k: each row meets the tokens as it is unpacked, and the dots of four rows are added up and
//                 transposed in one go
//   many tokens   lanes are rows: a chunk of sixteen rows is unpacked into a panel (panels-inl.hpp)

#if defined(MICA_KERNEL_HIGHWAY_INTEGER_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_KERNEL_HIGHWAY_INTEGER_INL_HPP
#undef MICA_KERNEL_HIGHWAY_INTEGER_INL_HPP
#else
#define MICA_KERNEL_HIGHWAY_INTEGER_INL_HPP
#endif

#include "mica/kernel/highway/fast8-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace MICA_PER_TARGET {
#if MICA_VECTORS

// ---- few tokens

/// Exact sums of code * x over 16 k, plus the bias, for 16 rows in fours: (16 / 4, chunk / 16, 4).
template <IntegerFormat F>
struct Dots {
  alignas(64) std::int32_t sum[panel_rows / 4][Chunk<F>::values / 16][4];

  /// Lanes are rows [row, row + lanes).
  HWY_INLINE VI of(std::size_t h, std::size_t row) const {
    return load_blocks(
        DI(), [&](std::size_t r) { return sum[r / 4][h]; }, row);
  }
};

/// The weighted sum of 32 values s, rows [r, r + lanes): exact, below 2^24.
template <IntegerFormat F>
HWY_INLINE VF weighted_sum(const Dots<F>& dots, const ChunkScales<F>& w, const TokenChunk& x, std::size_t s,
                           std::size_t r) {
  const DF d;
  const auto dot = [&](std::size_t h) HWY_ATTR {
    const VI sum = dots.of(h, r);
    return bias<F> == 0 ? sum : hn::Sub(sum, hn::Set(DI(), bias<F> * x.sums[h]));
  };
  if constexpr (F::group == 32) {
    const VF sum = hn::ConvertTo(d, hn::Add(dot(2 * s), dot(2 * s + 1)));
    return Codec<F>::unit_scales ? sum
                                 : hn::Mul(sum, hn::Load(d, w.scale[Codec<F>::unit_scales ? 0 : s] + r));
  } else {
    const VF sum = hn::Mul(hn::ConvertTo(d, dot(2 * s)), hn::Load(d, w.scale[2 * s] + r));
    return hn::MulAdd(hn::ConvertTo(d, dot(2 * s + 1)), hn::Load(d, w.scale[2 * s + 1] + r), sum);
  }
}

/// mac and the mins of 32 values s, group by group.
template <IntegerFormat F>
HWY_INLINE VF add_mins(const ChunkScales<F>& w, const TokenChunk& x, std::size_t s, std::size_t r, VF mac) {
  const DF d;
  for (std::size_t g = 32 * s / F::group; F::has_mins && g < 32 * (s + 1) / F::group; ++g) {
    const std::int32_t sum = F::group == 16 ? x.sums[g] : x.sums[2 * s] + x.sums[2 * s + 1];
    const VF factor = hn::Set(d, x.scales[s] * static_cast<float>(sum));
    mac = hn::MulAdd(hn::Load(d, w.min[g] + r), factor, mac);
  }
  return mac;
}

/// Adds n blocks of 16 rows to y[16].
template <IntegerFormat F>
HWY_INLINE void fold_dots(const Dots<F>& dots, const ChunkScales<F>& w, const TokenChunk& x, std::size_t n,
                          float* y) {
  const DF d;
  for (std::size_t r = 0; r < panel_rows; r += lanes) {
    VF product = hn::Load(d, y + r);
    for (std::size_t b = 0; b < n; ++b) {
      VF acc = hn::Zero(d), mac = hn::Zero(d);
      for (std::size_t s = b * F::block_size / 32; s < (b + 1) * F::block_size / 32; ++s) {
        acc = hn::MulAdd(hn::Set(d, x.scales[s]), weighted_sum(dots, w, x, s, r), acc);
        if constexpr (F::has_mins) mac = add_mins<F>(w, x, s, r, mac);
      }
      product = hn::MulAdd(hn::Load(d, w.d[b] + r), acc, product);
      if constexpr (F::has_mins) product = hn::NegMulAdd(hn::Load(d, w.dmin[b] + r), mac, product);
    }
    hn::Store(product, d, y + r);
  }
}

/// The dots of rows [first, first + 4) with every token; codes and tokens are padded to whole vectors.
template <IntegerFormat F, std::size_t tokens>
HWY_INLINE void dot_rows(const std::uint8_t (&codes)[4][Chunk<F>::values], const TokenChunk (&x)[tokens],
                         std::size_t values, std::size_t first, Dots<F> (&out)[tokens]) {
  constexpr std::size_t bytes = 4 * lanes;
  MICA_UNROLL
  for (std::size_t k = 0; k < values; k += bytes) {
    VU8 w[4];
    MICA_UNROLL
    for (std::size_t r = 0; r < 4; ++r) w[r] = machine_codes<F>(hn::LoadU(DU8(), codes[r] + k));
    MICA_UNROLL
    for (std::size_t t = 0; t < tokens; ++t) {
      const VI8 values_t = hn::LoadU(DI8(), x[t].codes + k);
      VI sum[4];
      MICA_UNROLL
      for (std::size_t r = 0; r < 4; ++r)
        sum[r] = dot4<F::code_max, quads<F>>(w[r], values_t, hn::Zero(DI()));
      hn::StoreU(sum_blocks(sum[0], sum[1], sum[2], sum[3]), DI(), out[t].sum[first / 4][k / 16]);
    }
  }
}

/// Adds n blocks of 16 rows, beginning with number b, to y[t][16]. n is known to the compiler for whole
/// chunks.
template <IntegerFormat F, std::size_t tokens>
HWY_INLINE void few_chunk(const typename F::Block* const* first_blocks, std::size_t b, std::size_t n,
                          std::size_t prefetch_bytes, const TokenChunk (&x)[tokens],
                          float (&y)[tokens][panel_rows]) {
  const typename F::Block* rows[panel_rows];
  ChunkScales<F> scales;
  Dots<F> dots[tokens];
  alignas(64) std::uint8_t codes[4][Chunk<F>::values];
  for (std::size_t r = 0; r < panel_rows; ++r) rows[r] = first_blocks[r] + b;
  Codec<F>::scales(rows, n, scales);
  for (std::size_t r = 0; r < panel_rows; r += 4) {
    for (std::size_t i = 0; i < 4; ++i) {
      const auto* const row = rows[r + i];
      for (std::size_t line = 0; line < n * sizeof(*row); line += 64) prefetch(row, prefetch_bytes + line);
      unpack_chunk<F>(row, n, codes[i]);
    }
    dot_rows<F>(codes, x, n * F::block_size, r, dots);
  }
  for (std::size_t t = 0; t < tokens; ++t) fold_dots<F>(dots[t], scales, x[t], n, y[t]);
}

/// y[t][16] = 16 rows times a few tokens.
template <IntegerFormat F, std::size_t tokens>
HWY_INLINE void few_tokens(const typename F::Block* const* rows, std::size_t blocks,
                           std::size_t prefetch_bytes, const QuantizedRows& x, std::size_t token,
                           float (&y)[tokens][panel_rows]) {
  for (std::size_t t = 0; t < tokens; ++t) std::fill_n(y[t], panel_rows, 0.0f);
  TokenChunk chunk[tokens];
  std::size_t b = 0;
  for (; b + Chunk<F>::blocks <= blocks; b += Chunk<F>::blocks) {
    for (std::size_t t = 0; t < tokens; ++t) chunk[t] = chunk_of(x, token + t, b * F::block_size);
    few_chunk<F>(rows, b, Chunk<F>::blocks, prefetch_bytes, chunk, y);
  }
  if constexpr (Chunk<F>::blocks > 1) {
    if (b == blocks) return;
    alignas(64) std::int8_t padded[tokens][Chunk<F>::values] = {};
    for (std::size_t t = 0; t < tokens; ++t) {
      chunk[t] = chunk_of(x, token + t, b * F::block_size);
      std::copy_n(chunk[t].codes, (blocks - b) * F::block_size, padded[t]);
      chunk[t].codes = padded[t];
    }
    few_chunk<F>(rows, b, blocks - b, prefetch_bytes, chunk, y);
  }
}

// ---- many tokens

template <IntegerFormat F>
void matmul_many(const MatmulArgs<F>& a) {
  const auto fill = [&](std::size_t p, std::size_t b, std::size_t n, Panel<F>& panel) HWY_ATTR {
    const typename F::Block* rows[panel_rows];
    alignas(64) std::uint8_t codes[panel_rows][Chunk<F>::values];
    rows_from(a, p * panel_rows, b, rows);
    Codec<F>::scales(rows, n, panel.scales);
    for (std::size_t r = 0; r < panel_rows; ++r) {
      for (std::size_t line = 0; line < n * sizeof(*rows[r]); line += 64)
        prefetch(rows[r] + Chunk<F>::blocks, line);
      unpack_chunk<F>(rows[r], n, codes[r]);
    }
    set_lines(codes, n * F::block_size, panel);
  };
  multiply_many<F>({a.x.codes, a.y, a.w.blocks_per_row(), a.first, a.last, a.add}, is_fast8(a), fill);
}

// ---- any number

template <std::size_t tokens, IntegerFormat F>
HWY_NOINLINE void matmul_few(const MatmulArgs<F>& a, std::size_t token) {
  alignas(64) float y[tokens][panel_rows];
  const typename F::Block* rows[panel_rows];
  const std::size_t panel_bytes = panel_rows * a.w.blocks_per_row() * sizeof(typename F::Block);
  for (std::size_t row = a.first; row < a.last; row += panel_rows) {
    rows_from(a, row, 0, rows);
    few_tokens<F>(rows, a.w.blocks_per_row(), panel_bytes, a.x.codes, token, y);
    for (std::size_t t = 0; t < tokens; ++t) {
      float* const out = a.y[token + t].data() + row;
      const std::size_t n = HWY_MIN(panel_rows, a.last - row);
      for (std::size_t r = 0; r < n; ++r) out[r] = a.add ? out[r] + y[t][r] : y[t][r];
    }
  }
}

template <IntegerFormat F>
void matmul_integer(const MatmulArgs<F>& a) {
  const std::size_t n = a.y.rows();
  if (a.first >= a.last) return;
  if (n >= 4 || is_fast8(a)) return matmul_many(a);
  if (n == 1) return matmul_few<1>(a, 0);
  if (n == 2) return matmul_few<2>(a, 0);
  if (n == 3) return matmul_few<3>(a, 0);
}

// ---- blocks that are unpacked already

/// The exact sum of code * x over n values, n a multiple of 16.
HWY_INLINE std::int32_t dot_codes(const std::int8_t* code, const std::int8_t* x, std::size_t n) {
  const hn::CappedTag<std::int16_t, 16> d16;
  const hn::Rebind<std::int8_t, decltype(d16)> d8;
  const hn::RepartitionToWide<decltype(d16)> d32;
  auto sum = hn::Zero(d32);
  for (std::size_t i = 0; i < n; i += hn::MaxLanes(d16)) {
    const auto a = hn::PromoteTo(d16, hn::LoadU(d8, code + i)), b = hn::PromoteTo(d16, hn::LoadU(d8, x + i));
    sum = hn::Add(sum, hn::WidenMulPairwiseAdd(d32, a, b));
  }
  return hn::ReduceSum(d32, sum);
}

#else

inline std::int32_t dot_codes(const std::int8_t* code, const std::int8_t* x, std::size_t n) {
  std::int32_t sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += code[i] * x[i];
  return sum;
}

#endif  // MICA_VECTORS

inline void fold_unpacked(const Unpacked& w, const std::int8_t* x, const float* xd, const std::int16_t* sums,
                          float* y) {
  float acc = 0, mac = 0;
  for (std::size_t s = 0; s < w.size / 32; ++s) {
    std::int64_t isum = 0;
    for (std::size_t g = 32 * s / w.group; g < 32 * (s + 1) / w.group; ++g) {
      isum += std::int64_t{w.scale[g]} * dot_codes(w.code + g * w.group, x + g * w.group, w.group);
    }
    acc = std::fma(xd[s], static_cast<float>(isum), acc);
    for (std::size_t g = 32 * s / w.group; w.has_mins && g < 32 * (s + 1) / w.group; ++g) {
      const std::int32_t sum = w.group == 16 ? sums[g] : sums[2 * g] + sums[2 * g + 1];
      mac = std::fma(static_cast<float>(w.min[g]), xd[s] * static_cast<float>(sum), mac);
    }
  }
  *y = std::fma(w.d, acc, *y);
  if (w.has_mins) *y = std::fma(-w.dmin, mac, *y);
}

}  // namespace MICA_PER_TARGET
HWY_AFTER_NAMESPACE();
#endif
