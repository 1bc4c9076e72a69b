// SPDX-License-Identifier: Apache-2.0
//
// Per target: a block of tokens times the panels of a chunk (panels-inl.hpp), in vector registers. A tile is
// two vectors of rows times a few tokens: each broadcast meets two lines, each line every token. In the float
// part every output sees the operations of kernel/matmul.hpp in order.

#if defined(MICA_KERNEL_HIGHWAY_TILES_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_KERNEL_HIGHWAY_TILES_INL_HPP
#undef MICA_KERNEL_HIGHWAY_TILES_INL_HPP
#else
#define MICA_KERNEL_HIGHWAY_TILES_INL_HPP
#endif

#include "mica/kernel/highway/panels-inl.hpp"

#if MICA_VECTORS
HWY_BEFORE_NAMESPACE();
namespace MICA_PER_TARGET {

/// Vectors of rows in a tile, and panels that are filled together.
inline constexpr std::size_t tile_vectors = 2;
inline constexpr std::size_t tile_panels = 2;
/// Tokens in a tile: running sums and accumulators for each of both vectors, 24 of 32 registers or 12 of 16;
/// where a dot takes its word out of a vector, 16 of 32 beside 8 lines; of eight bits: fast8-inl.hpp. Narrow
/// tiles at the end of a block leave at most three tokens idle.
template <IntegerFormat F>
inline constexpr std::size_t tile_tokens = !many_registers ? 3
                                           : lanes == 4    ? 4
                                                           : 6;
template <IntegerFormat F>
inline constexpr std::size_t narrow_tokens = tile_tokens<F> >= 6 ? 4 : 2;

/// Tokens of the next tile, where `rest` tokens of a block are left.
template <IntegerFormat F>
HWY_INLINE std::size_t next_tile(std::size_t rest) {
  const bool narrow = rest <= narrow_tokens<F> || (rest > tile_tokens<F> && rest <= 2 * narrow_tokens<F>);
  return narrow ? narrow_tokens<F> : tile_tokens<F>;
}

/// One vector per vector of rows and token.
template <class V, std::size_t tokens>
using TileOf = V[tile_vectors][tokens];

/// Where the last chunk writes the outputs of a product, without the buffer of the block.
struct Outputs {
  float* const* row = nullptr;  // of each token; null: outputs stay in the block
  std::size_t tokens = 0;       // that are there
  bool add = false;
};

/// Two panels. Lines and scales of the second lie `stride` bytes behind those of the first.
template <IntegerFormat F>
struct PanelPair {
  const std::uint8_t* lines;
  const ChunkScales<F>* scales;
  std::size_t stride;
  Outputs out = {};
  std::size_t column = 0;  // of the first row, among the outputs
};

/// Whether panels may be read where weights lie: those of formats that are kept as panels.
template <IntegerFormat F>
inline constexpr bool reads_in_place = false;

/// Whether tiles set outputs where the chunk is the first one of its rows; else they add to zeros.
template <IntegerFormat F>
inline constexpr bool sets_outputs = false;

/// What a tile reads and writes, at its first row and token. Everything else lies at distances that the
/// compiler knows.
template <IntegerFormat F>
struct Tile {
  const std::uint8_t* lines;        // of the panel
  const ChunkScales<F>* rows;       // moved by 4 bytes per row
  const std::int8_t* const* codes;  // of each token
  const float* scale;
  const float* min_factor;
  const std::int32_t* start;
  std::size_t values;  // of the chunk
  float* y;            // [2 panels][tokens][16 rows]
  std::size_t stride;  // of the pair
  bool first;          // the chunk is the first one of its rows: outputs begin at zero
  Outputs out;         // where the chunk is the last one of its rows
  std::size_t column;  // of the outputs

  /// From the first vector of rows to the second one, in a panel or in the pair.
  [[nodiscard]] HWY_INLINE std::size_t step() const {
    return lanes < panel_rows ? 4 * lanes : reads_in_place<F> ? stride : sizeof(Panel<F>);
  }
  /// Floats of the rows of vector v.
  [[nodiscard]] HWY_INLINE VF of_rows(const float* p, std::size_t v) const {
    return hn::LoadU(DF(), reinterpret_cast<const float*>(reinterpret_cast<const char*>(p) + v * step()));
  }
};

/// Codes of a tile's tokens, each where they lie.
template <std::size_t tokens>
using TokenCodes = const std::int8_t* [tokens];

/// Those of a tile.
template <std::size_t tokens, IntegerFormat F>
HWY_INLINE void codes_of(const Tile<F>& tile, TokenCodes<tokens>& codes) {
  MICA_UNROLL
  for (std::size_t t = 0; t < tokens; ++t) codes[t] = tile.codes[t];
}

/// Adds lines [first, last) of a group, counted from line `line`, whose first value is value k.
template <IntegerFormat F, std::size_t first, std::size_t last, std::size_t tokens>
HWY_INLINE void add_dots(const Tile<F>& tile, std::size_t line, const TokenCodes<tokens>& codes,
                         std::size_t k, TileOf<VI, tokens>& sum) {
  const std::uint8_t* const lines[tile_vectors] = {tile.lines + 64 * line,
                                                   tile.lines + 64 * line + tile.step()};
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
      w[0][i] = hn::LoadU(DU8(), lines[0] + 64 * (q + i));
      w[1][i] = hn::LoadU(DU8(), lines[1] + 64 * (q + i));
    }
    MICA_UNROLL
    for (std::size_t t = 0; t < tokens; ++t) {
      const std::int8_t* const x = codes[t] + k + 4 * q;
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

/// Integer sums of a group, before its first dot.
template <IntegerFormat F, std::size_t tokens>
HWY_INLINE void start_sums(const std::int32_t* start, TileOf<VI, tokens>& sum) {
  MICA_UNROLL
  for (std::size_t t = 0; t < tokens; ++t)
    sum[0][t] = sum[1][t] = bias<F> != 0 ? hn::Set(DI(), start[t * Chunk<F>::groups]) : hn::Zero(DI());
}

/// Integer sums of a group.
template <IntegerFormat F, std::size_t tokens>
HWY_INLINE void dot_group(const Tile<F>& tile, std::size_t line, const TokenCodes<tokens>& codes,
                          std::size_t k, const std::int32_t* start, TileOf<VI, tokens>& sum) {
  start_sums<F>(start, sum);
  constexpr std::size_t n = F::group / 4;
  constexpr std::size_t fit = paired_dots<F::code_max, quads<F>>;
  constexpr std::size_t step = fit == 1 ? n : HWY_MIN(n, std::bit_floor(fit));
  add_dots<F, 0, step>(tile, line, codes, k, sum);
  if constexpr (step <= n / 2) add_dots<F, step, 2 * step>(tile, line, codes, k, sum);
  if constexpr (step <= n / 4) {
    add_dots<F, 2 * step, 3 * step>(tile, line, codes, k, sum);
    add_dots<F, 3 * step, 4 * step>(tile, line, codes, k, sum);
  }
  static_assert(4 * step >= n);
}

/// The weighted sums of 32 values s: exact, below 2^24.
template <IntegerFormat F, std::size_t tokens>
HWY_INLINE void weighted_sums(const Tile<F>& tile, const TokenCodes<tokens>& codes, std::size_t s,
                              TileOf<VF, tokens>& isum) {
  const DF d;
  TileOf<VI, tokens> sum;
  constexpr std::size_t groups = 32 / F::group;
  dot_group<F>(tile, 8 * s, codes, 32 * s, tile.start + groups * s, sum);
  MICA_UNROLL
  for (std::size_t v = 0; v < tile_vectors; ++v) {
    MICA_UNROLL
    for (std::size_t t = 0; t < tokens; ++t) {
      isum[v][t] = hn::ConvertTo(d, sum[v][t]);
      if constexpr (!Codec<F>::unit_scales)
        isum[v][t] = hn::Mul(isum[v][t], tile.of_rows(tile.rows->scale[groups * s], v));
    }
  }
  if constexpr (groups == 2) {
    dot_group<F>(tile, 8 * s + 4, codes, 32 * s + 16, tile.start + 2 * s + 1, sum);
    MICA_UNROLL
    for (std::size_t v = 0; v < tile_vectors; ++v) {
      const VF scale = tile.of_rows(tile.rows->scale[2 * s + 1], v);
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

/// Every output becomes change(v, t, output), or with from_zero change(v, t, 0).
template <std::size_t tokens, bool from_zero = false, IntegerFormat F, class Change>
HWY_INLINE void change_outputs(const Tile<F>& tile, const Change& change) {
  MICA_UNROLL
  for (std::size_t v = 0; v < tile_vectors; ++v) {
    MICA_UNROLL
    for (std::size_t t = 0; t < tokens; ++t) {
      float* const y = output(tile, v, t);
      const VF before = from_zero ? hn::Zero(DF()) : hn::Load(DF(), y);
      hn::Store(change(v, t, before), DF(), y);
    }
  }
}

/// acc and the weighted sums of 32 values s.
template <IntegerFormat F, std::size_t tokens>
HWY_INLINE void add_sums(const Tile<F>& tile, const TokenCodes<tokens>& codes, std::size_t s,
                         TileOf<VF, tokens>& acc) {
  TileOf<VF, tokens> isum;
  weighted_sums<F>(tile, codes, s, isum);
  MICA_UNROLL
  for (std::size_t t = 0; t < tokens; ++t) {
    const VF scale = hn::Set(DF(), tile.scale[t * Chunk<F>::values / 32 + s]);
    acc[0][t] = hn::MulAdd(scale, isum[0][t], acc[0][t]);
    acc[1][t] = hn::MulAdd(scale, isum[1][t], acc[1][t]);
  }
}

/// Whether some token has a scale other than zero for 32 values s: most second codes
/// (kernel/second_codes.hpp) have none.
template <IntegerFormat F, std::size_t tokens>
HWY_INLINE bool any_scale(const Tile<F>& tile, std::size_t s) {
  std::uint32_t bits = 0;
  MICA_UNROLL
  for (std::size_t t = 0; t < tokens; ++t)
    bits |= std::bit_cast<std::uint32_t>(tile.scale[t * Chunk<F>::values / 32 + s]);
  return bits != 0;
}

/// mac and the mins of group g.
template <IntegerFormat F, std::size_t tokens>
HWY_INLINE void add_mins(const Tile<F>& tile, std::size_t g, TileOf<VF, tokens>& mac) {
  const VF min0 = tile.of_rows(tile.rows->min[g], 0), min1 = tile.of_rows(tile.rows->min[g], 1);
  MICA_UNROLL
  for (std::size_t t = 0; t < tokens; ++t) {
    const VF factor = hn::Set(DF(), tile.min_factor[t * Chunk<F>::groups + g]);
    mac[0][t] = hn::MulAdd(min0, factor, mac[0][t]);
    mac[1][t] = hn::MulAdd(min1, factor, mac[1][t]);
  }
}

/// Adds n blocks to the outputs. The mins take a turn of their own, so that one set of accumulators is alive
/// at a time.
template <std::size_t tokens, IntegerFormat F>
HWY_NOINLINE void multiply_tile(const Tile<F>& tile, std::size_t n) {
  constexpr std::size_t sums = F::block_size / 32, groups = F::block_size / F::group;
  TileOf<VF, tokens> acc;
  TokenCodes<tokens> codes;
  codes_of<tokens>(tile, codes);
  for (std::size_t b = 0; b < n; ++b) {
    clear(acc);
    for (std::size_t s = b * sums; s < (b + 1) * sums; ++s) add_sums<F>(tile, codes, s, acc);
    change_outputs<tokens>(tile, [&](std::size_t v, std::size_t t, VF y) HWY_ATTR {
      return hn::MulAdd(tile.of_rows(tile.rows->d[b], v), acc[v][t], y);
    });
    if constexpr (!F::has_mins) continue;
    clear(acc);
    for (std::size_t g = b * groups; g < (b + 1) * groups; ++g) add_mins<F>(tile, g, acc);
    change_outputs<tokens>(tile, [&](std::size_t v, std::size_t t, VF y) HWY_ATTR {
      return hn::NegMulAdd(tile.of_rows(tile.rows->dmin[b], v), acc[v][t], y);
    });
  }
}

/// The same for blocks of 32 values, with the outputs in registers.
template <std::size_t tokens, IntegerFormat F>
requires(F::block_size == 32) HWY_NOINLINE void multiply_tile(const Tile<F>& tile, std::size_t n) {
  TileOf<VF, tokens> product, sum;
  TokenCodes<tokens> codes;
  codes_of<tokens>(tile, codes);
  change_outputs<tokens>(tile,
                         [&](std::size_t v, std::size_t t, VF y) HWY_ATTR { return product[v][t] = y; });
  for (std::size_t b = 0; b < n; ++b) {
    const VF d[tile_vectors] = {tile.of_rows(tile.rows->d[b], 0), tile.of_rows(tile.rows->d[b], 1)};
    clear(sum);
    if (any_scale<F, tokens>(tile, b)) add_sums<F>(tile, codes, b, sum);  // else they stay zeros
    MICA_UNROLL
    for (std::size_t t = 0; t < tokens; ++t) {
      product[0][t] = hn::MulAdd(d[0], sum[0][t], product[0][t]);
      product[1][t] = hn::MulAdd(d[1], sum[1][t], product[1][t]);
    }
    if constexpr (!F::has_mins) continue;
    const VF dmin[tile_vectors] = {tile.of_rows(tile.rows->dmin[b], 0), tile.of_rows(tile.rows->dmin[b], 1)};
    clear(sum);
    for (std::size_t g = b * 32 / F::group; g < (b + 1) * 32 / F::group; ++g) add_mins<F>(tile, g, sum);
    MICA_UNROLL
    for (std::size_t t = 0; t < tokens; ++t) {
      product[0][t] = hn::NegMulAdd(dmin[0], sum[0][t], product[0][t]);
      product[1][t] = hn::NegMulAdd(dmin[1], sum[1][t], product[1][t]);
    }
  }
  change_outputs<tokens>(tile, [&](std::size_t v, std::size_t t, VF) HWY_ATTR { return product[v][t]; });
}

/// A pair of panels times one tile of tokens, from token t on.
template <std::size_t tokens, IntegerFormat F>
HWY_INLINE void multiply_rows(const PanelPair<F>& pair, const TokenBlock<F>& x, std::size_t t, std::size_t n,
                              float (*y)[block_tokens<F>][panel_rows]) {
  for (std::size_t r = 0; r < tile_panels * panel_rows; r += tile_vectors * lanes) {
    const std::size_t p = r / panel_rows, row = r % panel_rows, at = p * pair.stride + 4 * row;
    Tile<F> tile{pair.lines + at,
                 reinterpret_cast<const ChunkScales<F>*>(reinterpret_cast<const char*>(pair.scales) + at),
                 x.row + t,
                 x.scale[t],
                 x.min_factor[F::has_mins ? t : 0],
                 x.start[bias<F> != 0 ? t : 0],
                 x.values,
                 y[p][t] + row,
                 pair.stride,
                 x.first_chunk,
                 {},
                 pair.column + r};
    if (pair.out.row != nullptr) tile.out = {pair.out.row + t, pair.out.tokens - t, pair.out.add};
    multiply_tile<tokens>(tile, n);
  }
}

/// Panels of a chunk times a block of tokens, added to y. pair_at(i): panels i and i + 1.
template <IntegerFormat F, class PairAt>
HWY_INLINE void multiply_block(const PairAt& pair_at, std::size_t panels, const TokenBlock<F>& x,
                               std::size_t tokens, std::size_t n, float (*y)[block_tokens<F>][panel_rows]) {
  for (std::size_t i = 0; i < panels; i += tile_panels) {
    const PanelPair<F> pair = pair_at(i);
    for (std::size_t t = 0; t < tokens;) {
      const std::size_t tile = next_tile<F>(tokens - t);
      const auto multiply =
          tile == narrow_tokens<F> ? multiply_rows<narrow_tokens<F>, F> : multiply_rows<tile_tokens<F>, F>;
      multiply(pair, x, t, n, y + i);
      t += tile;
    }
  }
}

}  // namespace MICA_PER_TARGET
HWY_AFTER_NAMESPACE();
#endif  // MICA_VECTORS
#endif
