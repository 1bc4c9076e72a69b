// SPDX-License-Identifier: Apache-2.0
//
// Per target: products with integer formats in the layout of the file. Sixteen rows are computed together, and in the
// float part lanes are rows, so no sum crosses lanes and every output sees the operations of kernel/matmul.hpp in order.
//
//   few tokens    lanes are k: each row meets the tokens as it is unpacked, and the dots of four rows are added up and
//                 transposed in one go
//   many tokens   lanes are rows: a chunk of sixteen rows is unpacked once into a panel of lines, [k / 4][16 rows][4], and
//                 every token is four broadcast bytes per line

#if defined(MICA_KERNEL_HIGHWAY_INTEGER_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_KERNEL_HIGHWAY_INTEGER_INL_HPP
#undef MICA_KERNEL_HIGHWAY_INTEGER_INL_HPP
#else
#define MICA_KERNEL_HIGHWAY_INTEGER_INL_HPP
#endif

#include "mica/kernel/highway/codec-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace mica::kernel::highway {
inline namespace MICA_ABI {
namespace HWY_NAMESPACE {
#if MICA_VECTORS

/// What the machine's dots add for every x code, to be taken away again.
template <IntegerFormat F>
inline constexpr std::int32_t bias = signed_codes<F::code_max> ? 0 : F::code_offset;

/// Codes as the machine's dot wants them.
template <IntegerFormat F>
HWY_INLINE VU8 machine_codes(VU8 codes) {
  if constexpr (signed_codes<F::code_max> && F::code_offset != 0) {
    return hn::Sub(codes, hn::Set(DU8(), static_cast<std::uint8_t>(F::code_offset)));
  } else {
    return codes;
  }
}

/// Activations of one token, at the start of a chunk.
struct TokenChunk {
  const std::int8_t* codes;
  const float* scales;
  const std::int16_t* sums;
};

HWY_INLINE TokenChunk chunk_of(const QuantizedRows& x, std::size_t token, std::size_t k) {
  return {x.row_codes(token) + k, x.row_scales(token) + k / 32, x.row_sums(token) + k / 16};
}

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
      for (std::size_t r = 0; r < 4; ++r) sum[r] = dot4<F::code_max>(w[r], values_t, hn::Zero(DI()));
      hn::StoreU(sum_blocks(sum[0], sum[1], sum[2], sum[3]), DI(), out[t].sum[first / 4][k / 16]);
    }
  }
}

/// Adds n blocks of 16 rows, beginning with number b, to y[t][16]. n is known to the compiler for whole chunks.
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
struct Panel {
  alignas(64) std::uint8_t codes[Chunk<F>::values / 4][panel_rows][4];
  ChunkScales<F> scales;
};

/// n blocks of 16 rows.
template <IntegerFormat F>
HWY_INLINE void fill_panel(const typename F::Block* const* rows, std::size_t n, Panel<F>& panel) {
  alignas(64) std::uint8_t codes[panel_rows][Chunk<F>::values];
  Codec<F>::scales(rows, n, panel.scales);
  for (std::size_t r = 0; r < panel_rows; ++r) unpack_chunk<F>(rows[r], n, codes[r]);
  for (std::size_t k = 0; k < n * F::block_size; k += 16) {
    const auto at = [&](std::size_t r) { return reinterpret_cast<const std::int32_t*>(codes[r] + k); };
    for (std::size_t r = 0; r < panel_rows; r += lanes) {
      VI line[4];
      load_words(at, r, line);
      MICA_UNROLL
      for (std::size_t i = 0; i < 4; ++i)
        hn::Store(line[i], DI(), reinterpret_cast<std::int32_t*>(panel.codes[k / 4 + i][r]));
    }
  }
}

/// What a tile broadcasts, besides codes, in one chunk.
template <IntegerFormat F, std::size_t tokens>
struct TokenTile {
  const std::int8_t* codes[tokens];
  float scale[tokens][Chunk<F>::values / 32];
  float min_factor[tokens][F::has_mins ? Chunk<F>::groups : 1];     // scale * sum of x codes
  std::int32_t start[tokens][bias<F> != 0 ? Chunk<F>::groups : 1];  // minus the bias
};

/// One token of a tile, group by group.
template <IntegerFormat F, std::size_t tokens>
HWY_INLINE void fill_token(const TokenChunk& x, std::size_t t, std::size_t n, TokenTile<F, tokens>& tile) {
  for (std::size_t s = 0; s < n * F::block_size / 32; ++s) tile.scale[t][s] = x.scales[s];
  for (std::size_t g = 0; (F::has_mins || bias<F> != 0) && g < n * F::block_size / F::group; ++g) {
    std::int32_t sum = x.sums[g * F::group / 16];
    if constexpr (F::group == 32) sum += x.sums[g * F::group / 16 + 1];
    if constexpr (F::has_mins) tile.min_factor[t][g] = x.scales[g * F::group / 32] * static_cast<float>(sum);
    if constexpr (bias<F> != 0) tile.start[t][g] = -bias<F> * sum;
  }
}

/// The same for a whole chunk of 256 values, in vectors.
template <IntegerFormat F, std::size_t tokens>
HWY_INLINE void fill_token_whole(const TokenChunk& x, std::size_t t, TokenTile<F, tokens>& tile) {
  const hn::CappedTag<float, 8> df;
  const hn::RebindToSigned<decltype(df)> d32;
  const hn::Repartition<std::int16_t, decltype(df)> d16;
  constexpr std::size_t step = hn::MaxLanes(df);
  const auto minus_bias = static_cast<std::int16_t>(-bias<F>);
  MICA_UNROLL
  for (std::size_t s = 0; s < 8; s += step) {
    const auto scale = hn::LoadU(df, x.scales + s);
    const auto sums = hn::LoadU(d16, x.sums + 2 * s);
    hn::StoreU(scale, df, tile.scale[t] + s);
    if constexpr (F::has_mins && F::group == 32) {
      const auto sum = hn::ConvertTo(df, hn::WidenMulPairwiseAdd(d32, sums, hn::Set(d16, 1)));
      hn::StoreU(hn::Mul(scale, sum), df, tile.min_factor[t] + s);
    } else if constexpr (F::has_mins) {
      const auto low = hn::ConvertTo(df, hn::PromoteLowerTo(d32, sums)),
                 high = hn::ConvertTo(df, hn::PromoteUpperTo(d32, sums));
      float* const factor = tile.min_factor[t] + 2 * s;
      hn::StoreU(hn::Mul(hn::InterleaveWholeLower(df, scale, scale), low), df, factor);
      hn::StoreU(hn::Mul(hn::InterleaveWholeUpper(df, scale, scale), high), df, factor + step);
    }
    if constexpr (bias<F> != 0 && F::group == 32) {
      hn::StoreU(hn::WidenMulPairwiseAdd(d32, sums, hn::Set(d16, minus_bias)), d32, tile.start[t] + s);
    } else if constexpr (bias<F> != 0) {
      const auto factor = hn::Set(d32, minus_bias);
      hn::StoreU(hn::Mul(hn::PromoteLowerTo(d32, sums), factor), d32, tile.start[t] + 2 * s);
      hn::StoreU(hn::Mul(hn::PromoteUpperTo(d32, sums), factor), d32, tile.start[t] + 2 * s + step);
    }
  }
}

template <IntegerFormat F, std::size_t tokens>
HWY_INLINE void fill_tile(const QuantizedRows& x, std::size_t token, std::size_t token_end, std::size_t k,
                          std::size_t n, TokenTile<F, tokens>& tile) {
  constexpr bool vectors = Chunk<F>::values == 256;
  for (std::size_t t = 0; t < tokens; ++t) {
    const TokenChunk chunk = chunk_of(x, HWY_MIN(token + t, token_end - 1), k);
    tile.codes[t] = chunk.codes;
    if (vectors && n == Chunk<F>::blocks) {
      if constexpr (vectors) fill_token_whole(chunk, t, tile);
    } else {
      fill_token(chunk, t, n, tile);
    }
  }
}

/// Integer sums of one group: lanes are rows, one vector per token.
template <IntegerFormat F, std::size_t tokens>
HWY_INLINE void dot_group(const Panel<F>& panel, std::size_t r, const TokenTile<F, tokens>& x, std::size_t g,
                          VI (&sum)[tokens]) {
  MICA_UNROLL
  for (std::size_t t = 0; t < tokens; ++t) {
    if constexpr (bias<F> != 0) {
      sum[t] = hn::Set(DI(), x.start[t][g]);
    } else {
      sum[t] = hn::Zero(DI());
    }
  }
  MICA_UNROLL
  for (std::size_t q = 0; q < F::group / 4; ++q) {
    const std::size_t line = g * (F::group / 4) + q;
    const VU8 w = machine_codes<F>(hn::Load(DU8(), panel.codes[line][r]));
    MICA_UNROLL
    for (std::size_t t = 0; t < tokens; ++t) {
      sum[t] = dot4<F::code_max>(w, hn::BitCast(DI8(), broadcast4(x.codes[t] + 4 * line)), sum[t]);
    }
  }
}

/// The weighted sums of 32 values s, one vector per token: exact, below 2^24.
template <IntegerFormat F, std::size_t tokens>
HWY_INLINE void weighted_sums(const Panel<F>& panel, std::size_t r, const TokenTile<F, tokens>& x,
                              std::size_t s, VF (&isum)[tokens]) {
  const DF d;
  const ChunkScales<F>& w = panel.scales;
  VI sum[tokens];
  constexpr std::size_t groups = 32 / F::group;
  dot_group<F>(panel, r, x, groups * s, sum);
  MICA_UNROLL
  for (std::size_t t = 0; t < tokens; ++t) {
    isum[t] = hn::ConvertTo(d, sum[t]);
    if constexpr (!Codec<F>::unit_scales) isum[t] = hn::Mul(isum[t], hn::Load(d, w.scale[groups * s] + r));
  }
  if constexpr (groups == 2) {
    dot_group<F>(panel, r, x, 2 * s + 1, sum);
    const VF scale = hn::Load(d, w.scale[2 * s + 1] + r);
    MICA_UNROLL
    for (std::size_t t = 0; t < tokens; ++t) isum[t] = hn::MulAdd(hn::ConvertTo(d, sum[t]), scale, isum[t]);
  }
}

/// Adds n blocks of rows [r, r + lanes) to y[t][r].
template <IntegerFormat F, std::size_t tokens>
HWY_INLINE void multiply_tile(const Panel<F>& panel, std::size_t r, const TokenTile<F, tokens>& x,
                              std::size_t n, float (*y)[panel_rows]) {
  const DF d;
  const ChunkScales<F>& w = panel.scales;
  for (std::size_t b = 0; b < n; ++b) {
    VF acc[tokens], mac[tokens], isum[tokens];
    MICA_UNROLL
    for (std::size_t t = 0; t < tokens; ++t) acc[t] = mac[t] = hn::Zero(d);
    for (std::size_t s = b * F::block_size / 32; s < (b + 1) * F::block_size / 32; ++s) {
      weighted_sums<F>(panel, r, x, s, isum);
      MICA_UNROLL
      for (std::size_t t = 0; t < tokens; ++t)
        acc[t] = hn::MulAdd(hn::Set(d, x.scale[t][s]), isum[t], acc[t]);
      for (std::size_t g = 32 * s / F::group; F::has_mins && g < 32 * (s + 1) / F::group; ++g) {
        const VF min = hn::Load(d, w.min[g] + r);
        MICA_UNROLL
        for (std::size_t t = 0; t < tokens; ++t)
          mac[t] = hn::MulAdd(min, hn::Set(d, x.min_factor[t][g]), mac[t]);
      }
    }
    MICA_UNROLL
    for (std::size_t t = 0; t < tokens; ++t) {
      VF product = hn::MulAdd(hn::Load(d, w.d[b] + r), acc[t], hn::Load(d, y[t] + r));
      if constexpr (F::has_mins) product = hn::NegMulAdd(hn::Load(d, w.dmin[b] + r), mac[t], product);
      hn::Store(product, d, y[t] + r);
    }
  }
}

// Sixteen accumulators and eight running sums leave room in 32 registers; four and eight in 16.
inline constexpr std::size_t tile_tokens = many_registers ? 8 : 4;
// Rows that share the preparation of a token tile, tokens that share the unpacking of a panel: 32 rows x 128 tokens of
// outputs are 16 KiB, two panels 10 KiB, all on the stack.
inline constexpr std::size_t panels = 2;
inline constexpr std::size_t panel_tokens = 128;

template <std::size_t tokens, IntegerFormat F>
HWY_NOINLINE void multiply_panels(const Panel<F> (&panel)[panels], const QuantizedRows& x, std::size_t token,
                                  std::size_t token_end, std::size_t k, std::size_t n,
                                  float (*y)[panel_tokens][panel_rows], std::size_t y_token) {
  TokenTile<F, tokens> tile;
  fill_tile<F>(x, token, token_end, k, n, tile);
  for (std::size_t p = 0; p < panels; ++p) {
    for (std::size_t r = 0; r < panel_rows; r += lanes)
      multiply_tile<F>(panel[p], r, tile, n, y[p] + y_token);
  }
}

/// Pointers to 16 rows; those past the end repeat the last one.
template <IntegerFormat F>
HWY_INLINE void rows_from(const MatmulArgs<F>& a, std::size_t row,
                          const typename F::Block* (&rows)[panel_rows]) {
  for (std::size_t r = 0; r < panel_rows; ++r) rows[r] = a.w.row(HWY_MIN(row + r, a.last - 1));
}

template <IntegerFormat F>
HWY_INLINE void write_outputs(const MatmulArgs<F>& a, std::size_t row, std::size_t token,
                              const float* products) {
  float* const y = a.y[token].data() + row;
  const std::size_t n = HWY_MIN(panel_rows, a.last - row);
  for (std::size_t r = 0; r < n; ++r) y[r] = a.add ? y[r] + products[r] : products[r];
}

template <std::size_t tokens, IntegerFormat F>
HWY_NOINLINE void matmul_few(const MatmulArgs<F>& a, std::size_t token) {
  alignas(64) float y[tokens][panel_rows];
  const typename F::Block* rows[panel_rows];
  const std::size_t panel_bytes = panel_rows * a.w.blocks_per_row() * sizeof(typename F::Block);
  for (std::size_t row = a.first; row < a.last; row += panel_rows) {
    rows_from(a, row, rows);
    few_tokens<F>(rows, a.w.blocks_per_row(), panel_bytes, a.x.codes, token, y);
    for (std::size_t t = 0; t < tokens; ++t) write_outputs(a, row, token + t, y[t]);
  }
}

template <IntegerFormat F>
HWY_NOINLINE void matmul_many(const MatmulArgs<F>& a, std::size_t token, std::size_t token_end) {
  Panel<F> panel[panels];
  alignas(64) float y[panels][panel_tokens][panel_rows];
  const typename F::Block* rows[panels][panel_rows];
  for (std::size_t row = a.first; row < a.last; row += panels * panel_rows) {
    const std::size_t used = HWY_MIN(panels, (a.last - row + panel_rows - 1) / panel_rows);
    for (std::size_t p = 0; p < panels; ++p) rows_from(a, HWY_MIN(row + p * panel_rows, a.last - 1), rows[p]);
    std::fill_n(&y[0][0][0], sizeof(y) / sizeof(float), 0.0f);
    for (std::size_t b = 0; b < a.w.blocks_per_row(); b += Chunk<F>::blocks) {
      const std::size_t n = HWY_MIN(Chunk<F>::blocks, a.w.blocks_per_row() - b);
      for (std::size_t p = 0; p < panels; ++p) {
        fill_panel<F>(rows[p], n, panel[p]);
        for (auto& block : rows[p]) block += n;
      }
      for (std::size_t t = token; t < token_end;) {
        const bool narrow = token_end - t <= tile_tokens / 2;
        const auto multiply = narrow ? multiply_panels<tile_tokens / 2, F> : multiply_panels<tile_tokens, F>;
        multiply(panel, a.x.codes, t, token_end, b * F::block_size, n, y, t - token);
        t += narrow ? tile_tokens / 2 : tile_tokens;
      }
    }
    for (std::size_t p = 0; p < used; ++p) {
      for (std::size_t t = token; t < token_end; ++t)
        write_outputs(a, row + p * panel_rows, t, y[p][t - token]);
    }
  }
}

template <IntegerFormat F>
void matmul_integer(const MatmulArgs<F>& a) {
  const std::size_t n = a.y.rows();
  if (a.first >= a.last) return;
  if (n == 1) return matmul_few<1>(a, 0);
  if (n == 2) return matmul_few<2>(a, 0);
  if (n == 3) return matmul_few<3>(a, 0);
  for (std::size_t t = 0; t < n; t += panel_tokens) matmul_many(a, t, HWY_MIN(t + panel_tokens, n));
}

// ---- blocks that somebody else took apart

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

inline void fold_apart(const Apart& w, const std::int8_t* x, const float* xd, const std::int16_t* sums,
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

}  // namespace HWY_NAMESPACE
}  // namespace MICA_ABI
}  // namespace mica::kernel::highway
HWY_AFTER_NAMESPACE();
#endif
