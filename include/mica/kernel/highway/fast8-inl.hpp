// SPDX-License-Identifier: Apache-2.0
//
// Per target: products of many tokens by kernel/fast8.hpp. Panels are filled as for exact products and
// requantised where they lie, lanes being rows; from there on they are panels of kernel::EightBits. Floats of
// 16 bits are rounded 256 values at a time into such panels.

#if defined(MICA_KERNEL_HIGHWAY_FAST8_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_KERNEL_HIGHWAY_FAST8_INL_HPP
#undef MICA_KERNEL_HIGHWAY_FAST8_INL_HPP
#else
#define MICA_KERNEL_HIGHWAY_FAST8_INL_HPP
#endif

#include "mica/kernel/highway/elementwise-inl.hpp"
#include "mica/kernel/highway/strips-inl.hpp"

#if MICA_VECTORS
HWY_BEFORE_NAMESPACE();
namespace MICA_PER_TARGET {

template <>
struct Codec<EightBits> {
  static constexpr bool unit_scales = true;
};

/// As rounded rows have it, so that it may lie at any address (tensor/rounded.hpp).
template <>
struct ChunkScales<EightBits> {
  float d[1][panel_rows];
};

/// The first chunk of a row sets its outputs.
template <>
inline constexpr bool sets_outputs<EightBits> = true;

/// Rounded rows are kept as panels (tensor/rounded.hpp).
template <>
inline constexpr bool reads_in_place<EightBits> = true;

/// A tile keeps only integer sums in registers, so that wide vectors have room for more tokens.
template <>
inline constexpr std::size_t tile_tokens<EightBits> =
    many_registers&& lanes == panel_rows ? 8 : tile_tokens<format::Q8_0>;

/// The coefficients a and b of rows [r, r + lanes) by group, in both halves of a lane.
template <IntegerFormat F>
struct Requantiser {
  VI a[Chunk<F>::groups];
  VI b[Chunk<F>::groups];
};

/// The lower half of every lane, in both halves.
HWY_INLINE VI twice(VI v) { return hn::Or(hn::And(v, hn::Set(DI(), 0xffff)), hn::ShiftLeft<16>(v)); }

/// Sets the coefficients and answers the scale of the new codes.
template <IntegerFormat F>
HWY_INLINE VF make_requantiser(const ChunkScales<F>& w, std::size_t r, Requantiser<F>& out) {
  const DF d;
  constexpr std::size_t groups = Chunk<F>::groups, groups_of_block = groups / Chunk<F>::blocks;
  VF step[groups], base[groups], reach = hn::Zero(d), sum = hn::Zero(d);
  MICA_UNROLL
  for (std::size_t g = 0; g < groups; ++g) {
    const std::size_t b = g / groups_of_block;
    step[g] = hn::Load(d, w.d[b] + r);
    base[g] = hn::Zero(d);
    if constexpr (!Codec<F>::unit_scales) step[g] = hn::Mul(step[g], hn::Load(d, w.scale[g] + r));
    if constexpr (F::has_mins) base[g] = hn::Mul(hn::Load(d, w.dmin[b] + r), hn::Load(d, w.min[g] + r));
    if constexpr (F::code_offset != 0)
      base[g] = hn::MulAdd(step[g], hn::Set(d, static_cast<float>(F::code_offset)), base[g]);
    const VF low = hn::Abs(base[g]);
    const VF high = hn::Abs(hn::MulSub(step[g], hn::Set(d, static_cast<float>(F::code_max)), base[g]));
    reach = hn::Max(reach, hn::Max(low, high));
    sum = hn::Add(sum, hn::Add(low, high));
  }
  const auto usual = hn::And(hn::Ge(reach, hn::Set(d, activation_floor)),
                             hn::Lt(sum, hn::Set(d, std::numeric_limits<float>::infinity())));
  const VF inverse = hn::Div(hn::Set(d, fast8_reach * fast8_unit), reach);
  const VI middle = hn::Set(DI(), 128 * fast8_unit + fast8_unit / 2);
  MICA_UNROLL
  for (std::size_t g = 0; g < groups; ++g) {
    out.a[g] = twice(hn::NearestInt(hn::IfThenElseZero(usual, hn::Mul(step[g], inverse))));
    out.b[g] = twice(hn::Sub(middle, hn::NearestInt(hn::IfThenElseZero(usual, hn::Mul(base[g], inverse)))));
  }
  return hn::IfThenElse(usual, hn::Mul(reach, hn::Set(d, 1 / fast8_reach)), hn::Mul(sum, hn::Zero(d)));
}

/// The new codes of four values of some rows, plus 128. Lanes have 16 bits: even bytes and odd ones take
/// turns.
HWY_INLINE VU8 requantise_line(VU8 codes, VI a, VI b) {
  const hn::RebindToUnsigned<DI16> d;
  const auto pairs = hn::BitCast(d, codes), factor = hn::BitCast(d, a), offset = hn::BitCast(d, b);
  const auto low_byte = hn::Set(d, 0xff);
  const auto even = hn::Add(hn::Mul(hn::And(pairs, low_byte), factor), offset);
  const auto odd = hn::Add(hn::Mul(hn::ShiftRight<8>(pairs), factor), offset);
  return hn::BitCast(DU8(), hn::Or(hn::ShiftRight<8>(even), hn::AndNot(low_byte, odd)));
}

template <IntegerFormat F>
HWY_INLINE void requantise(const Panel<F>& from, Panel<EightBits>& to) {
  static_assert(Chunk<F>::values == Chunk<EightBits>::values);
  for (std::size_t r = 0; r < panel_rows; r += lanes) {
    Requantiser<F> q;
    hn::Store(make_requantiser(from.scales, r, q), DF(), to.scales.d[0] + r);
    for (std::size_t g = 0; g < Chunk<F>::groups; ++g) {
      MICA_UNROLL
      for (std::size_t i = 0; i < F::group / 4; ++i) {
        const std::size_t line = g * F::group / 4 + i;
        to.set(line, r, requantise_line(from.get(line, r), q.a[g], q.b[g]));
      }
    }
  }
}

/// What is read of a token beside its codes: one scale, and one start. Codes that are copied are 0 behind the
/// end of a row, so that the lines that they meet do not matter.
template <IntegerFormat F>
requires(std::is_same_v<F, EightBits>) HWY_INLINE
    void gather_token(const TokenChunk& x, std::size_t t, std::size_t, TokenBlock<F>& out) {
  out.scale[t][0] = x.scales[0];
  if (t >= out.in_place) {
    if (out.values == fast8_group) return copy_codes(x, out.codes[t]);
    std::copy_n(x.codes, out.values, out.codes[t]);
    std::fill(out.codes[t] + out.values, out.codes[t] + fast8_group, std::int8_t{0});
  }
  if (bias<F> != 0 && out.starts)
    out.start[bias<F> != 0 ? t : 0][0] = -bias<F> * sum_of(x.sums, out.values / 16);
}

/// Writes change(v, t, y) to the output of each token that is there, or adds it; y is the sum so far.
template <std::size_t tokens, IntegerFormat F, class Change>
HWY_INLINE void write_outputs(const Tile<F>& tile, const Change& change) {
  const DF d;
  MICA_UNROLL
  for (std::size_t t = 0; t < tokens; ++t) {
    if (t >= tile.out.tokens) return;
    float* const to = tile.out.row[t] + tile.column;
    MICA_UNROLL
    for (std::size_t v = 0; v < tile_vectors; ++v) {
      const VF product = change(v, t, tile.first ? hn::Zero(d) : hn::Load(d, output(tile, v, t)));
      hn::StoreU(tile.out.add ? hn::Add(hn::LoadU(d, to + v * lanes), product) : product, d, to + v * lanes);
    }
  }
}

/// One block: its lines without a pause.
template <std::size_t tokens, IntegerFormat F>
requires(std::is_same_v<F, EightBits>) HWY_NOINLINE void multiply_tile(const Tile<F>& tile, std::size_t) {
  const DF d;
  TileOf<VI, tokens> sum;
  TokenCodes<tokens> codes;
  codes_of<tokens>(tile, codes);
  start_sums<F>(tile.start, sum);
  for (std::size_t s = 0; s < tile.values / 32; ++s) {
    add_dots<F, 0, 8>(tile, 8 * s, codes, 32 * s, sum);
    MICA_UNROLL
    for (std::size_t t = 0; t < tokens; ++t) {
      keep(sum[0][t]);
      keep(sum[1][t]);
    }
  }
  const auto add_block = [&](std::size_t v, std::size_t t, VF y) HWY_ATTR {
    const VF scale = hn::Set(d, tile.scale[t * Chunk<F>::values / 32]);
    return hn::MulAdd(tile.of_rows(tile.rows->d[0], v), hn::Mul(scale, hn::ConvertTo(d, sum[v][t])), y);
  };
  if (tile.out.row != nullptr) return write_outputs<tokens>(tile, add_block);
  tile.first ? change_outputs<tokens, true>(tile, add_block) : change_outputs<tokens>(tile, add_block);
}

#if MICA_MATRIX_UNIT
template <>
inline constexpr std::size_t matrix_depth<EightBits> = 64;
template <>
inline constexpr std::size_t matrix_values<EightBits> = 64;

/// Adds the dots of 64 values, in order the q-th of a chunk, of 16 tokens with four panels to tiles 0 to 3.
template <int q>
HWY_INLINE void dot_panels(const MatrixTokens& tokens, const std::uint8_t* lines) {
  const std::size_t line = 64, panel = sizeof(Panel<EightBits>);
  asm volatile(
      "tileloadd %c5(%0,%1,1), %%tmm%c7\n\t"
      "tileloadd %c6(%2,%4,1), %%tmm6\n\ttdpbssd %%tmm6, %%tmm%c7, %%tmm0\n\t"
      "tileloadd %c6+%c8(%2,%4,1), %%tmm7\n\ttdpbssd %%tmm7, %%tmm%c7, %%tmm1\n\t"
      "tileloadd %c6(%3,%4,1), %%tmm6\n\ttdpbssd %%tmm6, %%tmm%c7, %%tmm2\n\t"
      "tileloadd %c6+%c8(%3,%4,1), %%tmm7\n\ttdpbssd %%tmm7, %%tmm%c7, %%tmm3"
      :
      : "r"(tokens.codes), "r"(tokens.stride), "r"(lines), "r"(lines + 2 * panel), "r"(line), "i"(64 * q),
        "i"(1024 * q), "i"(4 + q % 2), "i"(sizeof(Panel<EightBits>))
      : "memory");
}

/// Adds a chunk of 16 tokens and four panels to their outputs.
HWY_INLINE void multiply_four_panels(const Panel<EightBits>* panel, const TokenBlock<EightBits>& x,
                                     std::size_t token, MatrixSums& sums,
                                     float (*y)[block_tokens<EightBits>][panel_rows]) {
  const DF d;
  const MatrixTokens codes = tokens_of(x, token);
  const std::uint8_t* const lines = panel->lines[0][0];
  clear_sums();
  dot_panels<0>(codes, lines);
  if (x.values > 64) dot_panels<1>(codes, lines);
  if (x.values > 128) dot_panels<2>(codes, lines);
  if (x.values > 192) dot_panels<3>(codes, lines);
  store_sums(sums);
  for (std::size_t i = 0; i < 4; ++i) {
    const VF scale = hn::Load(d, panel[i].scales.d[0]);
    MICA_UNROLL
    for (std::size_t t = 0; t < matrix_tokens; ++t) {
      float* const out = y[i][token + t];
      const VF sum = hn::Mul(hn::Set(d, x.scale[token + t][0]), hn::ConvertTo(d, hn::Load(DI(), sums[i][t])));
      hn::Store(hn::MulAdd(scale, sum, hn::Load(d, out)), d, out);
    }
  }
}

/// The same for a block of tokens. Panels are multiplied in fours; results of panels that were not filled are
/// not read.
template <IntegerFormat F>
requires(std::is_same_v<F, EightBits>) HWY_NOINLINE
    void multiply_by_matrix_unit(const Panel<F>* panel, std::size_t panels, const TokenBlock<F>& x,
                                 std::size_t tokens, std::size_t, float (*y)[block_tokens<F>][panel_rows]) {
  static_assert(strip_panels % 4 == 0);
  const MatrixTiles unit(matrix_depth<F>);
  alignas(64) MatrixSums sums;
  for (std::size_t i = 0; i < panels; i += 4) {
    for (std::size_t t = 0; t < tokens; t += matrix_tokens)
      multiply_four_panels(panel + i, x, t, sums, y + i);
  }
}
#endif

/// Products of many tokens, as the activations want them; `fill` as for multiply_panels.
template <IntegerFormat F, class Fill>
void multiply_many(const PanelProduct& a, bool fast8, const Fill& fill) {
  if (!fast8) return multiply_panels<F>(a, fill);
  PanelProduct product = a;
  product.blocks = ceil_div(a.blocks, Chunk<F>::blocks);
  multiply_panels<EightBits>(
      product, [&](std::size_t p, std::size_t chunk, std::size_t, Panel<EightBits>& panel) HWY_ATTR {
        Panel<F> exact;
        const std::size_t b = chunk * Chunk<F>::blocks, n = HWY_MIN(Chunk<F>::blocks, a.blocks - b);
        if (n < Chunk<F>::blocks) std::memset(&exact.scales, 0, sizeof exact.scales);  // no block reaches far
        fill(p, b, n, exact);
        requantise(exact, panel);
      });
}

// ---- floats of 16 bits

/// What kernel/quantize.hpp makes of n <= 256 values of a row: the scale, and code + code_offset.
template <class T>
HWY_INLINE float round_row(const T* row, std::size_t n, std::uint8_t* HWY_RESTRICT codes) {
  const hn::Rebind<std::int8_t, DF> d8;
  const hn::Rebind<std::uint8_t, DF> du8;
  const GroupScale by = scale_of(largest_magnitude(row, n));
  if (by.inverse == 0) {
    std::fill_n(codes, fast8_group, static_cast<std::uint8_t>(EightBits::code_offset));
    return by.scale;
  }
  const VF inverse = hn::Set(DF(), by.inverse);
  const auto offset = hn::Set(du8, EightBits::code_offset);
  MICA_UNROLL
  for (std::size_t k = 0; k < n; k += lanes) {
    const auto code = hn::DemoteTo(d8, hn::NearestInt(hn::Mul(load(row + k), inverse)));
    hn::StoreU(hn::Add(hn::BitCast(du8, code), offset), du8, codes + k);
  }
  return by.scale;
}

/// Sixteen rows; row(r): n <= 256 values of row r.
template <class Row>
HWY_INLINE void round_panel(const Row& row, std::size_t n, Panel<EightBits>& panel) {
  alignas(64) std::uint8_t codes[panel_rows][fast8_group];
  for (std::size_t r = 0; r < panel_rows; ++r) panel.scales.d[0][r] = round_row(row(r), n, codes[r]);
  set_lines(codes, n, panel);
}

template <WeightFormat F>
void matmul_real_fast8(const MatmulArgs<F>& a) {
  const auto fill = [&](std::size_t p, std::size_t b, std::size_t, Panel<EightBits>& panel) HWY_ATTR {
    const auto row_of = [&](std::size_t r) HWY_ATTR {
      const auto* const row = a.w.row(HWY_MIN(p * panel_rows + r, a.last - 1)) + b * fast8_group;
      for (std::size_t line = 0; line < fast8_group * sizeof(*row); line += 64)
        prefetch(row + fast8_group, line);
      return row;
    };
    round_panel(row_of, HWY_MIN(fast8_group, a.w.cols() - b * fast8_group), panel);
  };
  multiply_panels<EightBits>({a.x.codes, a.y, ceil_div(a.w.cols(), fast8_group), a.first, a.last, a.add},
                             fill);
}

}  // namespace MICA_PER_TARGET
HWY_AFTER_NAMESPACE();
#endif  // MICA_VECTORS
#endif
