// SPDX-License-Identifier: Apache-2.0
//
// Per target: a block of tokens times the panels of a chunk (panels-inl.hpp), by the matrix unit
// (machine_options.hpp). A panel's lines are a tile as they lie, [k / 4][16 rows][4]; 16 tokens' codes are the
// other one, [16][k]; one instruction makes the integer sums of both over a group. Four groups at a time:
// unit and vectors share their ports, so that they take turns, and the unit's turn should be long.
//
//   tiles    0 to 3 sums, [16 tokens][16 rows]; 4 and 5 tokens; 6 and 7 lines
//
// The float operations of every output are those of kernel/matmul.hpp, in order.

#if defined(MICA_KERNEL_HIGHWAY_MATRIX_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_KERNEL_HIGHWAY_MATRIX_INL_HPP
#undef MICA_KERNEL_HIGHWAY_MATRIX_INL_HPP
#else
#define MICA_KERNEL_HIGHWAY_MATRIX_INL_HPP
#endif

#include "mica/kernel/highway/matrix_tiles-inl.hpp"
#include "mica/kernel/highway/panels-inl.hpp"

#if MICA_VECTORS
// Constants: no code for a target.
namespace MICA_PER_TARGET {

/// Tokens in a tile of the matrix unit.
inline constexpr std::size_t matrix_tokens = 16;

/// Whether products with F can use the unit: blocks of tokens are whole tiles, chunks whole fours of groups,
/// and codes fit into signed bytes.
template <IntegerFormat F>
inline constexpr bool fits_matrix_unit =
    MICA_MATRIX_UNIT != 0 && block_tokens<F> % matrix_tokens == 0 && Chunk<F>::groups % 4 == 0 &&
    F::code_max - F::code_offset <= 127 && F::code_offset <= 128;

/// Values of a token that are read at once.
template <IntegerFormat F>
inline constexpr std::size_t matrix_values = 4 * F::group;

}  // namespace MICA_PER_TARGET
#endif  // MICA_VECTORS

#if MICA_VECTORS && MICA_MATRIX_UNIT
HWY_BEFORE_NAMESPACE();
namespace MICA_PER_TARGET {

/// Values that one instruction takes: those of a group, as every group has its own scale.
template <IntegerFormat F>
inline constexpr std::size_t matrix_depth = F::group;

/// Tile `i` of sums = the dots of 16 tokens, `stride` bytes apart, with 16 rows.
template <int i>
HWY_INLINE void matrix_dots(const std::int8_t* tokens, std::size_t stride, const std::uint8_t* lines) {
  const std::size_t line = 64;
  asm volatile(
      "tilezero %%tmm%c4\n\t"
      "tileloadd (%0,%1,1), %%tmm%c5\n\t"
      "tileloadd (%2,%3,1), %%tmm%c6\n\t"
      "tdpbssd %%tmm%c6, %%tmm%c5, %%tmm%c4"
      :
      : "r"(tokens), "r"(stride), "r"(lines), "r"(line), "i"(i), "i"(4 + i % 2), "i"(6 + i % 2)
      : "memory");
}

/// The codes of a panel as the unit takes them: signed.
template <IntegerFormat F>
HWY_INLINE void sign_codes(Panel<F>& panel) {
  if constexpr (F::code_offset != 0) {
    const VU8 offset = hn::Set(DU8(), F::code_offset);
    for (auto& line : panel.lines) hn::Store(hn::Sub(hn::Load(DU8(), line[0]), offset), DU8(), line[0]);
  }
}

/// One panel and 16 tokens of a block.
template <IntegerFormat F>
struct MatrixPair {
  const Panel<F>* panel;
  const TokenBlock<F>* x;
  std::size_t token;
  float (*y)[panel_rows];
};

/// The codes of 16 tokens, `stride` bytes apart.
struct MatrixTokens {
  const std::int8_t* codes;
  std::size_t stride;
};
template <IntegerFormat F>
HWY_INLINE MatrixTokens tokens_of(const TokenBlock<F>& x, std::size_t token) {
  if (token < x.in_place) return {x.first + token * x.stride, x.stride};
  return {x.codes[token], Chunk<F>::values};
}

/// The sums of groups [4 q, 4 q + 4).
template <IntegerFormat F>
HWY_INLINE void dot_groups(const MatrixPair<F>& p, std::size_t q, MatrixSums& sums) {
  constexpr std::size_t step = F::group;
  const auto [first, stride] = tokens_of(*p.x, p.token);
  const std::int8_t* const codes = first + 4 * step * q;
  const std::uint8_t* const lines = p.panel->lines[step * q][0];
  matrix_dots<0>(codes, stride, lines);
  matrix_dots<1>(codes + step, stride, lines + 16 * step);
  matrix_dots<2>(codes + 2 * step, stride, lines + 32 * step);
  matrix_dots<3>(codes + 3 * step, stride, lines + 48 * step);
  store_sums(sums);
}

/// acc and the weighted sums, exact and below 2^24, of 32 values s, whose group number i is the first in
/// sums; in a vector for each token.
template <IntegerFormat F>
HWY_INLINE void fold_sums(const MatrixPair<F>& p, std::size_t s, const MatrixSums& sums, std::size_t i,
                          VF (&acc)[matrix_tokens]) {
  const DF d;
  constexpr bool unit = Codec<F>::unit_scales, two = F::group == 16;
  const auto& scales = p.panel->scales.scale;
  const VF scale = unit ? hn::Zero(d) : hn::Load(d, scales[unit ? 0 : two ? 2 * s : s]);
  const VF second = two ? hn::Load(d, scales[two ? 2 * s + 1 : 0]) : scale;
  MICA_UNROLL
  for (std::size_t t = 0; t < matrix_tokens; ++t) {
    VF sum = hn::ConvertTo(d, hn::Load(DI(), sums[i][t]));
    if constexpr (!unit) sum = hn::Mul(sum, scale);
    if constexpr (two) sum = hn::MulAdd(hn::ConvertTo(d, hn::Load(DI(), sums[i + 1][t])), second, sum);
    acc[t] = hn::MulAdd(hn::Set(d, p.x->scale[p.token + t][s]), sum, acc[t]);
  }
}

template <IntegerFormat F>
HWY_INLINE void fold_mins(const MatrixPair<F>& p, std::size_t g, VF (&mac)[matrix_tokens]) {
  const DF d;
  const VF min = hn::Load(d, p.panel->scales.min[g]);
  MICA_UNROLL
  for (std::size_t t = 0; t < matrix_tokens; ++t)
    mac[t] = hn::MulAdd(min, hn::Set(d, p.x->min_factor[p.token + t][g]), mac[t]);
}

/// y becomes f(y, acc), token by token.
template <class Acc, class F>
HWY_INLINE void change_outputs(float (*y)[panel_rows], Acc (&acc)[matrix_tokens], const F& f) {
  MICA_UNROLL
  for (std::size_t t = 0; t < matrix_tokens; ++t) hn::Store(f(hn::Load(DF(), y[t]), acc[t]), DF(), y[t]);
}

/// Adds n blocks of a pair to its outputs.
template <IntegerFormat F>
HWY_INLINE void multiply_pair(const MatrixPair<F>& p, std::size_t n, MatrixSums& sums) {
  const DF d;
  constexpr std::size_t runs = F::block_size / 32, groups = F::block_size / F::group, of_run = 32 / F::group;
  VF acc[matrix_tokens];
  for (std::size_t b = 0; b < n; ++b) {
    clear(acc);
    for (std::size_t s = b * runs; s < (b + 1) * runs; ++s) {
      const std::size_t g = s * of_run;
      if (g % 4 == 0) dot_groups(p, g / 4, sums);
      fold_sums(p, s, sums, g % 4, acc);
    }
    const VF scale = hn::Load(d, p.panel->scales.d[b]);
    change_outputs(p.y, acc, [&](VF y, VF sum) HWY_ATTR { return hn::MulAdd(scale, sum, y); });
    if constexpr (!F::has_mins) continue;
    clear(acc);
    for (std::size_t g = b * groups; g < (b + 1) * groups; ++g) fold_mins(p, g, acc);
    const VF min = hn::Load(d, p.panel->scales.dmin[F::has_mins ? b : 0]);
    change_outputs(p.y, acc, [&](VF y, VF sum) HWY_ATTR { return hn::NegMulAdd(min, sum, y); });
  }
}

/// The same for blocks of 32 values with one scale and no min, with the outputs in registers.
template <IntegerFormat F>
requires(F::block_size == 32 && F::group == 32 && Codec<F>::unit_scales && !F::has_mins) HWY_INLINE
    void multiply_pair(const MatrixPair<F>& p, std::size_t n, MatrixSums& sums) {
  const DF d;
  VF y[matrix_tokens];
  change_outputs(p.y, y, [](VF before, VF& after) HWY_ATTR { return after = before; });
  for (std::size_t b = 0; b < n; ++b) {
    if (b % 4 == 0) dot_groups(p, b / 4, sums);
    const VF scale = hn::Load(d, p.panel->scales.d[b]);
    MICA_UNROLL
    for (std::size_t t = 0; t < matrix_tokens; ++t) {
      const VF sum = hn::ConvertTo(d, hn::Load(DI(), sums[b % 4][t]));
      y[t] = hn::MulAdd(scale, hn::Mul(hn::Set(d, p.x->scale[p.token + t][b]), sum), y[t]);
    }
  }
  change_outputs(p.y, y, [](VF, VF after) HWY_ATTR { return after; });
}

/// Panels of a chunk times a block of tokens, added to y. Of a chunk that is not whole, groups are multiplied
/// for nothing.
template <IntegerFormat F>
HWY_NOINLINE void multiply_by_matrix_unit(const Panel<F>* panel, std::size_t panels, const TokenBlock<F>& x,
                                          std::size_t tokens, std::size_t n,
                                          float (*y)[block_tokens<F>][panel_rows]) {
  const MatrixTiles unit(matrix_depth<F>);
  alignas(64) MatrixSums sums;
  for (std::size_t i = 0; i < panels; ++i) {
    for (std::size_t t = 0; t < tokens; t += matrix_tokens) {
      const MatrixPair<F> pair{panel + i, &x, t, y[i] + t};
      multiply_pair(pair, n, sums);
    }
  }
}

}  // namespace MICA_PER_TARGET
HWY_AFTER_NAMESPACE();
#endif  // MICA_VECTORS && MICA_MATRIX_UNIT
#endif
