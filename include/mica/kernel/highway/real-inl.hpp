// SPDX-License-Identifier: Apache-2.0
//
// Per target: products with formats of float arithmetic. Sixteen chains by k are the lanes of one to four
// vectors. A tile of rows times tokens keeps its chains in registers; between tiles they lie in memory, where
// those of sixteen rows meet at the end and are added up and transposed in one go.

#if defined(MICA_KERNEL_HIGHWAY_REAL_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_KERNEL_HIGHWAY_REAL_INL_HPP
#undef MICA_KERNEL_HIGHWAY_REAL_INL_HPP
#else
#define MICA_KERNEL_HIGHWAY_REAL_INL_HPP
#endif

#include "mica/kernel/highway/codec-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace MICA_PER_TARGET {
#if MICA_VECTORS

/// Values [k, k + lanes) of a row of F32, F16 or BF16; other formats have an overload beside their codec.
template <class T>
HWY_INLINE VF values_at(const T* row, std::size_t k) {
  return load(row + k);
}

/// Vector `part` of the chains takes up to sixteen products; lanes past the last keep their chain.
template <class T>
HWY_INLINE VF extend_tail(const T* w, const float* x, std::size_t n, std::size_t part, VF c) {
  const std::size_t first = part * lanes;
  if (n <= first) return c;
  const std::size_t count = HWY_MIN(n - first, lanes);
  const VF longer = hn::MulAdd(load_first(w + first, count), load_first(x + first, count), c);
  return hn::IfThenElse(hn::FirstN(DF(), count), longer, c);
}

// Rows and tokens of a tile: its chains fill the registers, but for those that a step of k needs.
inline constexpr std::size_t real_rows = parts == 1 ? 4 : 2;
inline constexpr std::size_t real_tokens = parts == 1 ? 6 : 3;
// Tokens that pass before the second level has forgotten sixteen rows; more go in blocks.
inline constexpr std::size_t once_tokens = 3 * real_tokens;
// How much of k a tile takes before the next one's turn: the activations of six tokens then stay in the
// first-level cache while sixteen rows pass by. Panels of rows that share those activations, tokens that
// share the panels: 144 KiB of chains on the stack wait for their turn.
inline constexpr std::size_t real_run = 1024;
inline constexpr std::size_t real_panels = 4;
inline constexpr std::size_t real_block = 36;

/// The chains of sixteen rows times one token.
struct RowChains {
  alignas(64) float c[panel_rows][16];
};

/// Ways of walking a matrix: few tokens read it from memory and ask for what comes later, many find it in a
/// cache and ask for the chains of the next tile.
enum class Walk : std::uint8_t { once, again };

/// What a walk asks memory for: one token takes two places of the matrix in turns (ops-inl.hpp), a few
/// tokens the bytes at a fixed distance behind the current tile.
struct Asked {
  const std::uint8_t* data = nullptr;
  std::size_t bytes = 0;
  std::size_t behind = 0;
};

/// Asks for as much as a step of a tile takes, `passed` bytes from the beginning of the matrix and k values
/// into the tile.
template <std::size_t tokens, std::size_t step_bytes>
HWY_INLINE void ask(const Asked& asked, std::size_t passed, std::size_t k) {
  if constexpr (tokens > 1) {
    MICA_UNROLL
    for (std::size_t line = 0; line < step_bytes; line += 64)
      prefetch(asked.data, passed + asked.behind + line);
  } else if constexpr (step_bytes < two_lines) {
    if (k / 16 % (two_lines / step_bytes) == 0) ask_two_places(asked.data, passed, asked.bytes);
  } else {
    MICA_UNROLL
    for (std::size_t pair = 0; pair < step_bytes; pair += two_lines)
      ask_two_places(asked.data, passed + pair, asked.bytes);
  }
}

/// Continues the chains of a tile's rows from `row` on by k products, k a multiple of 16.
template <Walk walk, std::size_t tokens, WeightFormat F>
HWY_INLINE void extend_tile(const typename F::Block* const* rows, const float* const* x, std::size_t k,
                            std::size_t row, const Asked& asked, RowChains* chains) {
  constexpr std::size_t step_bytes = real_rows * 16 * sizeof(typename F::Block) / F::block_size;
  const typename F::Block* w[real_rows];
  const float* values[tokens];
  VF c[tokens][real_rows][parts];
  MICA_UNROLL
  for (std::size_t r = 0; r < real_rows; ++r) w[r] = rows[row + r];
  MICA_UNROLL
  for (std::size_t t = 0; t < tokens; ++t) {
    values[t] = x[t];
    MICA_UNROLL
    for (std::size_t r = 0; r < real_rows; ++r) {
      if constexpr (walk == Walk::again) prefetch_write(chains[t].c[row + real_rows + r]);
      MICA_UNROLL
      for (std::size_t p = 0; p < parts; ++p) c[t][r][p] = load(chains[t].c[row + r] + p * lanes);
    }
  }
  const auto begin = reinterpret_cast<std::uintptr_t>(w[0]) - reinterpret_cast<std::uintptr_t>(asked.data);
  for (std::size_t i = 0; i < k; i += 16) {
    if constexpr (walk == Walk::once) ask<tokens, step_bytes>(asked, begin + i / 16 * step_bytes, i);
    MICA_UNROLL
    for (std::size_t p = 0; p < parts; ++p) {
      VF weights[real_rows];
      MICA_UNROLL
      for (std::size_t r = 0; r < real_rows; ++r) weights[r] = values_at(w[r], i + p * lanes);
      MICA_UNROLL
      for (std::size_t t = 0; t < tokens; ++t) {
        const VF v = load(values[t] + i + p * lanes);
        MICA_UNROLL
        for (std::size_t r = 0; r < real_rows; ++r) c[t][r][p] = hn::MulAdd(weights[r], v, c[t][r][p]);
      }
    }
  }
  MICA_UNROLL
  for (std::size_t t = 0; t < tokens; ++t) {
    MICA_UNROLL
    for (std::size_t r = 0; r < real_rows; ++r) {
      MICA_UNROLL
      for (std::size_t p = 0; p < parts; ++p) hn::Store(c[t][r][p], DF(), chains[t].c[row + r] + p * lanes);
    }
  }
}

/// The same for all tiles of `count` rows; chains and rows past the last are computed and never read.
template <Walk walk, std::size_t tokens, WeightFormat F>
HWY_NOINLINE void extend_rows(const typename F::Block* const* rows, std::size_t count, const float* const* x,
                              std::size_t k, const Asked& asked, RowChains* chains) {
  for (std::size_t r = 0; r < count; r += real_rows)
    extend_tile<walk, tokens, F>(rows, x, k, r, asked, chains);
}

/// The same for 1 to real_tokens tokens.
template <Walk walk, WeightFormat F>
HWY_INLINE void extend_rows(std::size_t tokens, const typename F::Block* const* rows, std::size_t count,
                            const float* const* x, std::size_t k, const Asked& asked, RowChains* chains) {
  with_constant<real_tokens>(
      tokens, [&](auto n) HWY_ATTR { extend_rows<walk, n, F>(rows, count, x, k, asked, chains); });
}

/// c[i] += c[i + 8] and, where a vector holds several rows by then, c[i] += c[i + 4]: every 128-bit block
/// holds four numbers of one row, which are r, r + 4, r + 8 and r + 12 as far as the vector goes.
HWY_INLINE VF fold_chains(const RowChains& chains, std::size_t r) {
  const DF d;
  const auto fold_eight = [&](std::size_t i) HWY_ATTR {
    const float* const c = chains.c[i];
    if constexpr (parts == 4) {
      return hn::Add(hn::Add(load(c), load(c + 8)), hn::Add(load(c + 4), load(c + 12)));
    } else if constexpr (parts == 2) {
      return hn::Add(load(c), load(c + 8));
    } else {
      const VF a = load(c), b = load(chains.c[i + 8]);
      return hn::Add(hn::ConcatLowerLower(d, b, a), hn::ConcatUpperUpper(d, b, a));
    }
  };
  const VF a = fold_eight(r);
  if constexpr (parts == 4) {
    return a;
  } else {
    const VF b = fold_eight(r + 4);
    if constexpr (parts == 2) {
      return hn::Add(hn::ConcatLowerLower(d, b, a), hn::ConcatUpperUpper(d, b, a));
    } else {
      return hn::Add(hn::OddEvenBlocks(hn::SwapAdjacentBlocks(b), a),
                     hn::OddEvenBlocks(b, hn::SwapAdjacentBlocks(a)));
    }
  }
}

/// tree16 of the chains of n <= 16 rows, stored to y or added there.
HWY_INLINE void finish_rows(const RowChains& chains, std::size_t n, bool add, float* y) {
  const DF d;
  for (std::size_t r = 0; r < n; r += lanes) {
    const VF sum = sum_blocks(fold_chains(chains, r), fold_chains(chains, r + 1), fold_chains(chains, r + 2),
                              fold_chains(chains, r + 3));
    if (r + lanes <= n) {
      hn::StoreU(add ? hn::Add(load(y + r), sum) : sum, d, y + r);
    } else {
      alignas(64) float sums[lanes];
      hn::Store(sum, d, sums);
      for (std::size_t i = 0; r + i < n; ++i) y[r + i] = add ? y[r + i] + sums[i] : sums[i];
    }
  }
}

/// Chains of n <= 16 rows, beginning at `row`, and some tokens: from nothing to the outputs.
template <WeightFormat F>
struct RealPanel {
  static_assert(F::block_size == 1 || F::block_size % 16 == 0, "only single numbers may leave a tail");

  const MatmulArgs<F>& a;
  std::size_t row, n;

  HWY_INLINE RealPanel(const MatmulArgs<F>& args, std::size_t first)
      : a(args), row(first), n(HWY_MIN(panel_rows, args.last - first)) {}

  /// The numbers behind the last whole turn of the chains, then the outputs.
  HWY_INLINE void finish(std::size_t token, std::size_t tokens, RowChains* chains) const {
    const std::size_t whole = a.w.cols() / 16 * 16, tail = a.w.cols() - whole;
    for (std::size_t t = 0; t < tokens; ++t) {
      if constexpr (F::block_size == 1) {
        const float* const x = a.x.values[token + t].data() + whole;
        for (std::size_t r = 0; tail > 0 && r < n; ++r) {
          for (std::size_t p = 0; p < parts; ++p) {
            float* const c = chains[t].c[r] + p * lanes;
            hn::Store(extend_tail(a.w.row(row + r) + whole, x, tail, p, load(c)), DF(), c);
          }
        }
      }
      finish_rows(chains[t], n, a.add, a.y[token + t].data() + row);
    }
  }
};

/// n things in parts of at most `max`, as even as can be: the size of the first part.
HWY_INLINE std::size_t even_part(std::size_t n, std::size_t max) {
  const std::size_t count = (n + max - 1) / max;
  return (n + count - 1) / count;
}

/// All tokens at once, at most once_tokens: a panel comes from memory while the last one is multiplied.
template <WeightFormat F>
HWY_NOINLINE void matmul_real_once(const MatmulArgs<F>& a) {
  RowChains chains[once_tokens];
  const typename F::Block* rows[panel_rows];
  const float* x[once_tokens];
  const std::size_t n = a.y.rows(), row_bytes = a.w.blocks_per_row() * sizeof(typename F::Block);
  // Behind a tile lies the next one, or the next panel where tiles pass more than once.
  const Asked asked{reinterpret_cast<const std::uint8_t*>(a.w.row(0)), a.w.rows() * row_bytes,
                    row_bytes * (n <= real_tokens ? real_rows : panel_rows)};
  for (std::size_t t = 0; t < n; ++t) x[t] = a.x.values[t].data();
  for (std::size_t row = a.first; row < a.last; row += panel_rows) {
    const RealPanel<F> panel(a, row);
    rows_from(a, row, 0, rows);
    std::fill_n(&chains[0].c[0][0], n * panel_rows * 16, 0.0f);
    for (std::size_t t = 0, tokens = 0; t < n; t += tokens) {
      tokens = even_part(n - t, real_tokens);
      extend_rows<Walk::once, F>(tokens, rows, panel.n, x + t, a.w.cols() / 16 * 16, asked, chains + t);
    }
    panel.finish(0, n, chains);
  }
}

/// Up to real_block tokens, beginning at `token`.
template <WeightFormat F>
HWY_NOINLINE void matmul_real_block(const MatmulArgs<F>& a, std::size_t token, std::size_t n) {
  RowChains chains[real_panels]
                  [real_block + 1];  // one more: the last tile asks for what is behind its chains
  const typename F::Block* rows[panel_rows];
  const float* x[real_tokens];
  const std::size_t whole = a.w.cols() / 16 * 16;
  for (std::size_t row = a.first; row < a.last; row += real_panels * panel_rows) {
    const std::size_t panels = HWY_MIN(real_panels, (a.last - row + panel_rows - 1) / panel_rows);
    for (std::size_t p = 0; p < panels; ++p) std::fill_n(&chains[p][0].c[0][0], n * panel_rows * 16, 0.0f);
    for (std::size_t k = 0, run = 0; k < whole; k += run) {
      run = 16 * even_part((whole - k) / 16, real_run / 16);
      for (std::size_t t = 0, tokens = 0; t < n; t += tokens) {
        tokens = even_part(n - t, real_tokens);
        for (std::size_t i = 0; i < tokens; ++i) x[i] = a.x.values[token + t + i].data() + k;
        for (std::size_t p = 0; p < panels; ++p) {
          const RealPanel<F> panel(a, row + p * panel_rows);
          rows_from(a, panel.row, k / F::block_size, rows);
          extend_rows<Walk::again, F>(tokens, rows, panel.n, x, run, {}, chains[p] + t);
        }
      }
    }
    for (std::size_t p = 0; p < panels; ++p)
      RealPanel<F>(a, row + p * panel_rows).finish(token, n, chains[p]);
  }
}

template <WeightFormat F>
void matmul_real(const MatmulArgs<F>& a) {
  const std::size_t n = a.y.rows();
  if (a.first >= a.last) return;
  if (n <= once_tokens) return matmul_real_once(a);
  for (std::size_t t = 0, tokens = 0; t < n; t += tokens) {
    tokens = even_part(n - t, real_block);
    matmul_real_block(a, t, tokens);
  }
}

inline void extend_chains(const float* w, const float* x, std::size_t n, float* c) {
  VF v[parts];
  for (std::size_t p = 0; p < parts; ++p) v[p] = load(c + p * lanes);
  const std::size_t whole = n / 16 * 16;
  for (std::size_t i = 0; i < whole; i += 16) {
    MICA_UNROLL
    for (std::size_t p = 0; p < parts; ++p)
      v[p] = hn::MulAdd(load(w + i + p * lanes), load(x + i + p * lanes), v[p]);
  }
  for (std::size_t p = 0; p < parts; ++p) {
    hn::StoreU(extend_tail(w + whole, x + whole, n - whole, p, v[p]), DF(), c + p * lanes);
  }
}

#else

inline void extend_chains(const float* w, const float* x, std::size_t n, float* c) {
  for (std::size_t i = 0; i < n; ++i) c[i % 16] = std::fma(w[i], x[i], c[i % 16]);
}

#endif  // MICA_VECTORS
}  // namespace MICA_PER_TARGET
HWY_AFTER_NAMESPACE();
#endif
