// SPDX-License-Identifier: Apache-2.0
//
// Per target: products of many tokens with integer formats, whatever layout the weights have. Lanes are rows. Sixteen rows
// of a chunk are a panel of lines, [k / 4][16 rows][4], which a source fills; every token is four broadcast bytes per line.
//
//   panels      in strips, each chunk of which is filled once for up to three blocks of tokens
//   tokens      in blocks whose activations of a chunk are gathered once for all panels of a strip
//   tile        two vectors of rows times a few tokens: each broadcast meets two lines, each line every token
//
// In the float part every output sees the operations of kernel/matmul.hpp in order.

#if defined(MICA_KERNEL_HIGHWAY_PANELS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_KERNEL_HIGHWAY_PANELS_INL_HPP
#undef MICA_KERNEL_HIGHWAY_PANELS_INL_HPP
#else
#define MICA_KERNEL_HIGHWAY_PANELS_INL_HPP
#endif

#include "mica/kernel/highway/codec-inl.hpp"

#if MICA_VECTORS
HWY_BEFORE_NAMESPACE();
namespace mica::kernel::highway {
inline namespace MICA_ABI {
namespace HWY_NAMESPACE {

/// What the machine's dots add for every x code, to be taken away again.
template <IntegerFormat F>
inline constexpr std::int32_t bias = signed_codes<F::code_max, quads<F>> ? 0 : F::code_offset;

/// Codes as the machine's dot wants them.
template <IntegerFormat F>
HWY_INLINE VU8 machine_codes(VU8 codes) {
  if constexpr (signed_codes<F::code_max, quads<F>> && F::code_offset != 0) {
    return hn::Sub(codes, hn::Set(DU8(), static_cast<std::uint8_t>(F::code_offset)));
  } else {
    return codes;
  }
}

/// Code + code_offset again.
template <IntegerFormat F>
HWY_INLINE VU8 unsigned_codes(VU8 codes) {
  if constexpr (signed_codes<F::code_max, quads<F>> && F::code_offset != 0) {
    return hn::Add(codes, hn::Set(DU8(), static_cast<std::uint8_t>(F::code_offset)));
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

// ---- what tokens bring

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
};

/// Where the factors of one token go, by 32 values and by group; those that a format does without are not touched.
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

/// n blocks of one token.
template <IntegerFormat F>
HWY_INLINE void gather_token(const TokenChunk& x, std::size_t t, std::size_t n, TokenBlock<F>& out) {
  const TokenFactors factors{out.scale[t], out.min_factor[F::has_mins ? t : 0],
                             out.start[bias<F> != 0 ? t : 0]};
  if (Chunk<F>::values != 256 || n != Chunk<F>::blocks) {
    std::copy_n(x.codes, n * F::block_size, out.codes[t]);
    return gather_factors<F>(x, n, factors);
  }
  copy_codes(x, out.codes[t]);
  gather_factors_whole<F>(x, factors);
}

/// n blocks from value k on of tokens [first, last); up to `padded` tokens the last one is repeated.
template <IntegerFormat F>
HWY_INLINE void gather_tokens(const QuantizedRows& x, std::size_t first, std::size_t last, std::size_t padded,
                              std::size_t k, std::size_t n, TokenBlock<F>& out) {
  for (std::size_t t = 0; t < padded; ++t)
    gather_token<F>(chunk_of(x, HWY_MIN(first + t, last - 1), k), t, n, out);
}

// ---- tiles

/// Vectors of rows in a tile, and panels that are filled together.
inline constexpr std::size_t tile_vectors = 2;
inline constexpr std::size_t tile_panels = 2;
/// Tokens in a tile: running sums and accumulators for each of both vectors, 24 of 32 registers or 12 of 16; where a dot
/// takes its word out of a vector, 16 of 32 beside 8 lines. Narrow tiles at the end of a block leave at most one token idle.
inline constexpr std::size_t tile_tokens = !many_registers ? 3 : lanes == 4 ? 4 : 6;
inline constexpr std::size_t narrow_tokens = tile_tokens == 6 ? 4 : 2;

/// One vector per vector of rows and token.
template <class V, std::size_t tokens>
using TileOf = V[tile_vectors][tokens];

/// From the first vector of rows of a tile to vector v, in a panel or in the pair.
template <IntegerFormat F>
inline constexpr std::size_t panel_step = lanes < panel_rows ? 4 * lanes : sizeof(Panel<F>);

/// What a tile reads and writes, at its first row and token. Everything else lies at distances that the compiler knows.
template <IntegerFormat F>
struct Tile {
  const std::uint8_t* lines;   // of the panel
  const ChunkScales<F>* rows;  // moved by 4 bytes per row
  const std::int8_t* codes;    // of the tokens
  const float* scale;
  const float* min_factor;
  const std::int32_t* start;
  float* y;  // [2 panels][tokens][16 rows]
};

/// Floats of the rows of vector v.
template <IntegerFormat F>
HWY_INLINE VF of_rows(const float* p, std::size_t v) {
  return hn::Load(DF(), reinterpret_cast<const float*>(reinterpret_cast<const char*>(p) + v * panel_step<F>));
}

/// Vector v of the rows of a line.
template <IntegerFormat F>
HWY_INLINE VU8 line_of(const std::uint8_t* lines, std::size_t line, std::size_t v) {
  return hn::Load(DU8(), lines + 64 * line + v * panel_step<F>);
}

/// Adds lines [first, last) of a group.
template <IntegerFormat F, std::size_t first, std::size_t last, std::size_t tokens>
HWY_INLINE void add_dots(const std::uint8_t* lines, const std::int8_t* codes, TileOf<VI, tokens>& sum) {
  constexpr std::size_t fit = paired_dots<F::code_max, quads<F>>;
  constexpr bool paired = fit > 1 && last - first > 1;
  constexpr std::size_t words = line_words<quads<F>>;
  TileOf<Pairs, tokens> pairs;
  MICA_UNROLL
  for (std::size_t q = first; q < last; q += words) {
    VU8 w[tile_vectors][words];
    keep_order();
    MICA_UNROLL
    for (std::size_t i = 0; i < words; ++i) {
      w[0][i] = line_of<F>(lines, q + i, 0);
      w[1][i] = line_of<F>(lines, q + i, 1);
    }
    MICA_UNROLL
    for (std::size_t t = 0; t < tokens; ++t) {
      const std::int8_t* const x = codes + t * Chunk<F>::values + 4 * q;
      if constexpr (paired) {
        const VI8 word = hn::BitCast(DI8(), broadcast4(x));
        pairs[0][t] = q == first ? dot2(w[0][0], word) : dot2(w[0][0], word, pairs[0][t]);
        pairs[1][t] = q == first ? dot2(w[1][0], word) : dot2(w[1][0], word, pairs[1][t]);
      } else {
        sum[0][t] = dot_words<F::code_max, quads<F>>(w[0], x, sum[0][t]);
        sum[1][t] = dot_words<F::code_max, quads<F>>(w[1], x, sum[1][t]);
      }
    }
  }
  if constexpr (paired) {
    MICA_UNROLL
    for (std::size_t t = 0; t < tokens; ++t) {
      sum[0][t] = add_pairs(pairs[0][t], sum[0][t]);
      sum[1][t] = add_pairs(pairs[1][t], sum[1][t]);
    }
  }
}

/// Integer sums of a group.
template <IntegerFormat F, std::size_t tokens>
HWY_INLINE void dot_group(const std::uint8_t* lines, const std::int8_t* codes, const std::int32_t* start,
                          TileOf<VI, tokens>& sum) {
  MICA_UNROLL
  for (std::size_t t = 0; t < tokens; ++t) {
    if constexpr (bias<F> != 0) {
      sum[0][t] = sum[1][t] = hn::Set(DI(), start[t * Chunk<F>::groups]);
    } else {
      sum[0][t] = sum[1][t] = hn::Zero(DI());
    }
  }
  constexpr std::size_t n = F::group / 4;
  constexpr std::size_t fit = paired_dots<F::code_max, quads<F>>;
  constexpr std::size_t step = fit == 1 ? n : HWY_MIN(n, std::bit_floor(fit));
  add_dots<F, 0, step>(lines, codes, sum);
  if constexpr (step <= n / 2) add_dots<F, step, 2 * step>(lines, codes, sum);
  if constexpr (step <= n / 4) {
    add_dots<F, 2 * step, 3 * step>(lines, codes, sum);
    add_dots<F, 3 * step, 4 * step>(lines, codes, sum);
  }
  static_assert(4 * step >= n);
}

/// The weighted sums of 32 values s: exact, below 2^24.
template <IntegerFormat F, std::size_t tokens>
HWY_INLINE void weighted_sums(const Tile<F>& tile, std::size_t s, TileOf<VF, tokens>& isum) {
  const DF d;
  TileOf<VI, tokens> sum;
  constexpr std::size_t groups = 32 / F::group;
  const std::uint8_t* const lines = tile.lines + s * 8 * 64;
  const std::int8_t* const codes = tile.codes + s * 32;
  dot_group<F>(lines, codes, tile.start + groups * s, sum);
  MICA_UNROLL
  for (std::size_t v = 0; v < tile_vectors; ++v) {
    MICA_UNROLL
    for (std::size_t t = 0; t < tokens; ++t) {
      isum[v][t] = hn::ConvertTo(d, sum[v][t]);
      if constexpr (!Codec<F>::unit_scales)
        isum[v][t] = hn::Mul(isum[v][t], of_rows<F>(tile.rows->scale[groups * s], v));
    }
  }
  if constexpr (groups == 2) {
    dot_group<F>(lines + 4 * 64, codes + 16, tile.start + 2 * s + 1, sum);
    MICA_UNROLL
    for (std::size_t v = 0; v < tile_vectors; ++v) {
      const VF scale = of_rows<F>(tile.rows->scale[2 * s + 1], v);
      MICA_UNROLL
      for (std::size_t t = 0; t < tokens; ++t)
        isum[v][t] = hn::MulAdd(hn::ConvertTo(d, sum[v][t]), scale, isum[v][t]);
    }
  }
}

/// Where the outputs of vector v and token t of a tile lie.
template <IntegerFormat F>
HWY_INLINE float* output(const Tile<F>& tile, std::size_t v, std::size_t t) {
  return tile.y + (lanes < panel_rows ? v * lanes : v * block_tokens<F> * panel_rows) + t * panel_rows;
}

/// Every output becomes change(v, t, output).
template <std::size_t tokens, IntegerFormat F, class Change>
HWY_INLINE void change_outputs(const Tile<F>& tile, const Change& change) {
  MICA_UNROLL
  for (std::size_t v = 0; v < tile_vectors; ++v) {
    MICA_UNROLL
    for (std::size_t t = 0; t < tokens; ++t) {
      float* const y = output(tile, v, t);
      hn::Store(change(v, t, hn::Load(DF(), y)), DF(), y);
    }
  }
}

template <std::size_t tokens>
HWY_INLINE void clear(TileOf<VF, tokens>& v) {
  MICA_UNROLL
  for (std::size_t t = 0; t < tokens; ++t) v[0][t] = v[1][t] = hn::Zero(DF());
}

/// acc and the weighted sums of 32 values s.
template <IntegerFormat F, std::size_t tokens>
HWY_INLINE void add_sums(const Tile<F>& tile, std::size_t s, TileOf<VF, tokens>& acc) {
  TileOf<VF, tokens> isum;
  weighted_sums<F>(tile, s, isum);
  MICA_UNROLL
  for (std::size_t t = 0; t < tokens; ++t) {
    const VF scale = hn::Set(DF(), tile.scale[t * Chunk<F>::values / 32 + s]);
    acc[0][t] = hn::MulAdd(scale, isum[0][t], acc[0][t]);
    acc[1][t] = hn::MulAdd(scale, isum[1][t], acc[1][t]);
  }
}

/// mac and the mins of group g.
template <IntegerFormat F, std::size_t tokens>
HWY_INLINE void add_mins(const Tile<F>& tile, std::size_t g, TileOf<VF, tokens>& mac) {
  const VF min0 = of_rows<F>(tile.rows->min[g], 0), min1 = of_rows<F>(tile.rows->min[g], 1);
  MICA_UNROLL
  for (std::size_t t = 0; t < tokens; ++t) {
    const VF factor = hn::Set(DF(), tile.min_factor[t * Chunk<F>::groups + g]);
    mac[0][t] = hn::MulAdd(min0, factor, mac[0][t]);
    mac[1][t] = hn::MulAdd(min1, factor, mac[1][t]);
  }
}

/// Adds n blocks to the outputs. The mins take a turn of their own, so that one set of accumulators is alive at a time.
template <std::size_t tokens, IntegerFormat F>
HWY_NOINLINE void multiply_tile(const Tile<F>& tile, std::size_t n) {
  constexpr std::size_t sums = F::block_size / 32, groups = F::block_size / F::group;
  TileOf<VF, tokens> acc;
  for (std::size_t b = 0; b < n; ++b) {
    clear<tokens>(acc);
    for (std::size_t s = b * sums; s < (b + 1) * sums; ++s) add_sums<F>(tile, s, acc);
    change_outputs<tokens>(tile, [&](std::size_t v, std::size_t t, VF y) HWY_ATTR {
      return hn::MulAdd(of_rows<F>(tile.rows->d[b], v), acc[v][t], y);
    });
    if constexpr (!F::has_mins) continue;
    clear<tokens>(acc);
    for (std::size_t g = b * groups; g < (b + 1) * groups; ++g) add_mins<F>(tile, g, acc);
    change_outputs<tokens>(tile, [&](std::size_t v, std::size_t t, VF y) HWY_ATTR {
      return hn::NegMulAdd(of_rows<F>(tile.rows->dmin[b], v), acc[v][t], y);
    });
  }
}

/// The same for blocks of 32 values, with the outputs in registers.
template <std::size_t tokens, IntegerFormat F>
requires(F::block_size == 32) HWY_NOINLINE void multiply_tile(const Tile<F>& tile, std::size_t n) {
  TileOf<VF, tokens> product, sum;
  change_outputs<tokens>(tile,
                         [&](std::size_t v, std::size_t t, VF y) HWY_ATTR { return product[v][t] = y; });
  for (std::size_t b = 0; b < n; ++b) {
    const VF d[tile_vectors] = {of_rows<F>(tile.rows->d[b], 0), of_rows<F>(tile.rows->d[b], 1)};
    clear<tokens>(sum);
    add_sums<F>(tile, b, sum);
    MICA_UNROLL
    for (std::size_t t = 0; t < tokens; ++t) {
      product[0][t] = hn::MulAdd(d[0], sum[0][t], product[0][t]);
      product[1][t] = hn::MulAdd(d[1], sum[1][t], product[1][t]);
    }
    if constexpr (!F::has_mins) continue;
    const VF dmin[tile_vectors] = {of_rows<F>(tile.rows->dmin[b], 0), of_rows<F>(tile.rows->dmin[b], 1)};
    clear<tokens>(sum);
    for (std::size_t g = b * 32 / F::group; g < (b + 1) * 32 / F::group; ++g) add_mins<F>(tile, g, sum);
    MICA_UNROLL
    for (std::size_t t = 0; t < tokens; ++t) {
      product[0][t] = hn::NegMulAdd(dmin[0], sum[0][t], product[0][t]);
      product[1][t] = hn::NegMulAdd(dmin[1], sum[1][t], product[1][t]);
    }
  }
  change_outputs<tokens>(tile, [&](std::size_t v, std::size_t t, VF) HWY_ATTR { return product[v][t]; });
}

/// A pair of panels times one tile of tokens.
template <std::size_t tokens, IntegerFormat F>
HWY_INLINE void multiply_rows(const Panel<F>* panel, const TokenBlock<F>& x, std::size_t t, std::size_t n,
                              float (*y)[block_tokens<F>][panel_rows]) {
  for (std::size_t r = 0; r < tile_panels * panel_rows; r += tile_vectors * lanes) {
    const std::size_t p = r / panel_rows, row = r % panel_rows;
    const auto* const rows = reinterpret_cast<const char*>(&panel[p].scales) + 4 * row;
    const Tile<F> tile{panel[p].lines[0][row],
                       reinterpret_cast<const ChunkScales<F>*>(rows),
                       x.codes[t],
                       x.scale[t],
                       x.min_factor[F::has_mins ? t : 0],
                       x.start[bias<F> != 0 ? t : 0],
                       y[p][t] + row};
    multiply_tile<tokens>(tile, n);
  }
}

// ---- the product

/// A product of many tokens, without its weights: as MatmulArgs, rows of `blocks` blocks.
struct PanelProduct {
  QuantizedRows x;      // (n, k)
  MatrixView<float> y;  // (n, rows)
  std::size_t blocks;
  std::size_t first;
  std::size_t last;
  bool add;
};

/// Rows [16 p, 16 p + 16) of tokens [token, token + n); what lies outside the slice is dropped.
HWY_INLINE void write_panel(const PanelProduct& a, std::size_t p, std::size_t token, std::size_t n,
                            const float (*products)[panel_rows]) {
  const DF d;
  const std::size_t row = p * panel_rows, begin = HWY_MAX(a.first, row),
                    end = HWY_MIN(a.last, row + panel_rows);
  for (std::size_t t = 0; t < n; ++t) {
    float* const y = a.y[token + t].data() + row;
    if (end - begin == panel_rows) {
      MICA_UNROLL
      for (std::size_t r = 0; r < panel_rows; r += lanes) {
        const VF product = hn::Load(d, products[t] + r);
        hn::StoreU(a.add ? hn::Add(hn::LoadU(d, y + r), product) : product, d, y + r);
      }
    } else {
      for (std::size_t r = begin - row; r < end - row; ++r)
        y[r] = a.add ? y[r] + products[t][r] : products[t][r];
    }
  }
}

// Panels that are filled together: 256 rows. With three blocks of tokens their outputs are 288 KiB, the panels themselves at
// most 84 and the activations of a block 40; all of it lies on the stack and in the second level.
inline constexpr std::size_t strip_panels = 16;
/// Blocks of tokens that share one filling.
inline constexpr std::size_t strip_blocks = 3;

/// Panels of a chunk times a block of tokens, added to y.
template <IntegerFormat F>
HWY_INLINE void multiply_block(const Panel<F>* panel, std::size_t panels, const TokenBlock<F>& x,
                               std::size_t tokens, std::size_t n, float (*y)[block_tokens<F>][panel_rows]) {
  for (std::size_t i = 0; i < panels; i += tile_panels) {
    for (std::size_t t = 0; t < tokens;) {
      const std::size_t rest = tokens - t;
      const bool narrow = rest <= narrow_tokens || (rest > tile_tokens && rest <= 2 * narrow_tokens);
      const auto multiply = narrow ? multiply_rows<narrow_tokens, F> : multiply_rows<tile_tokens, F>;
      multiply(panel + i, x, t, n, y + i);
      t += narrow ? narrow_tokens : tile_tokens;
    }
  }
}

/// Panels [p, p_end), at most strip_panels of them, times tokens [token, token_end), in at most strip_blocks blocks of
/// `step`.
template <IntegerFormat F, class Fill>
HWY_NOINLINE void multiply_strip(const PanelProduct& a, const Fill& fill, std::size_t p, std::size_t p_end,
                                 std::size_t token, std::size_t token_end, std::size_t step) {
  TokenBlock<F> x;
  Panel<F> panel[strip_panels];
  alignas(64) float y[strip_blocks][strip_panels][block_tokens<F>][panel_rows];
  const std::size_t panels = (p_end - p + 1) / tile_panels * tile_panels;
  // A tile may reach one token past the last one.
  const auto padded = [](std::size_t tokens) { return HWY_MAX(narrow_tokens, (tokens + 1) / 2 * 2); };
  const auto for_each_block = [&](const auto& f) HWY_ATTR {
    for (std::size_t j = 0; token + j * step < token_end; ++j)
      f(y[j], token + j * step, HWY_MIN(step, token_end - token - j * step));
  };
  for_each_block([&](auto* out, std::size_t, std::size_t tokens) HWY_ATTR {
    for (std::size_t i = 0; i < panels; ++i) std::fill_n(out[i][0], padded(tokens) * panel_rows, 0.0f);
  });
  for (std::size_t b = 0; b < a.blocks; b += Chunk<F>::blocks) {
    const std::size_t n = HWY_MIN(Chunk<F>::blocks, a.blocks - b);
    for (std::size_t i = 0; i < panels; ++i) fill(HWY_MIN(p + i, p_end - 1), b, n, panel[i]);
    for_each_block([&](auto* out, std::size_t first, std::size_t tokens) HWY_ATTR {
      gather_tokens<F>(a.x, first, first + tokens, padded(tokens), b * F::block_size, n, x);
      multiply_block<F>(panel, panels, x, tokens, n, out);
    });
  }
  for_each_block([&](auto* out, std::size_t first, std::size_t tokens) HWY_ATTR {
    for (std::size_t i = p; i < p_end; ++i) write_panel(a, i, first, tokens, out[i - p]);
  });
}

/// The product, where fill(p, b, n, panel) takes apart blocks [b, b + n) of rows [16 p, 16 p + 16): n blocks of a chunk
/// of `panel`, its lines by Panel::set. Rows that the matrix lacks may hold anything finite.
template <IntegerFormat F, class Fill>
void multiply_panels(const PanelProduct& a, const Fill& fill) {
  const std::size_t n = a.y.rows(), p_end = (a.last + panel_rows - 1) / panel_rows;
  const std::size_t count = (n + block_tokens<F> - 1) / block_tokens<F>;
  const std::size_t share = ((n + count - 1) / count + tile_tokens - 1) / tile_tokens * tile_tokens;
  const std::size_t step = HWY_MIN(block_tokens<F>, share);
  if (a.first >= a.last) return;
  for (std::size_t t = 0; t < n; t += strip_blocks * step) {
    for (std::size_t p = a.first / panel_rows; p < p_end; p += strip_panels)
      multiply_strip<F>(a, fill, p, HWY_MIN(p + strip_panels, p_end), t, HWY_MIN(t + strip_blocks * step, n),
                        step);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace MICA_ABI
}  // namespace mica::kernel::highway
HWY_AFTER_NAMESPACE();
#endif  // MICA_VECTORS
#endif
