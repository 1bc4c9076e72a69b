// SPDX-License-Identifier: Apache-2.0
//
// Per target: products with floats of 16 bits that are packed in twelve (tensor/detail/packed12_panel.hpp). A table
// of sixteen bytes turns codes into high bytes, which meet their low bytes; the results are floats without
// their lower halves, sixteen values of k to a chain as in real-inl.hpp.
//
//   few tokens     four rows at a time go from memory to the chains, one stream per panel
//   many tokens    sixteen rows become floats on the stack, some of k at a time, then as in real-inl.hpp

#if defined(MICA_KERNEL_HIGHWAY_PACKED12_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_KERNEL_HIGHWAY_PACKED12_INL_HPP
#undef MICA_KERNEL_HIGHWAY_PACKED12_INL_HPP
#else
#define MICA_KERNEL_HIGHWAY_PACKED12_INL_HPP
#endif

#include "mica/kernel/highway/fast8-inl.hpp"
#include "mica/kernel/highway/real-inl.hpp"

#if MICA_VECTORS
HWY_BEFORE_NAMESPACE();
namespace MICA_PER_TARGET {

using tensor::Packed12Panel;
static_assert(Packed12Panel::rows == panel_rows);

/// High bytes of one step of a quad.
struct StepBytes {
  alignas(64) std::uint8_t high[Packed12Panel::quad_rows][Packed12Panel::step];
};

/// Calls f(std::integral_constant<std::size_t, r>()) for the rows of a quad.
template <class F>
HWY_INLINE void for_quad_rows(const F& f) {
  f(std::integral_constant<std::size_t, 0>());
  f(std::integral_constant<std::size_t, 1>());
  f(std::integral_constant<std::size_t, 2>());
  f(std::integral_constant<std::size_t, 3>());
}

/// A table of sixteen bytes in every block of a vector.
HWY_INLINE VU8 listed_bytes(const std::byte* panel) {
  return hn::LoadDup128(DU8(), reinterpret_cast<const Packed12Panel::Head*>(panel)->high);
}

/// Bytes [p * 4 * lanes, ...) of row r of a step, by the table alone.
template <std::size_t r>
HWY_INLINE VU8 high_bytes(const std::uint8_t* step, std::size_t p, VU8 table) {
  const VU8 codes =
      hn::LoadU(DU8(), step + Packed12Panel::codes_at + r / 2 * Packed12Panel::step + p * 4 * lanes);
  return hn::TableLookupBytes(table, nibble<r % 2 != 0>(codes));
}

/// All high bytes of a step, those of outliers too. Functions that are no templates would be compiled in
/// every unit: Outliers is Packed12Panel's.
template <class Outliers>
HWY_NOINLINE void restore_step(const std::uint8_t* step, VU8 table, const Outliers& outliers,
                               StepBytes& out) {
  for (std::size_t p = 0; p < parts; ++p) {
    for_quad_rows([&](auto r) HWY_ATTR {
      hn::StoreU(high_bytes<decltype(r)::value>(step, p, table), DU8(), out.high[r] + p * 4 * lanes);
    });
  }
  for (const auto* outlier = outliers.begin; outlier != outliers.end; ++outlier)
    out.high[outlier->row()][outlier->place()] = outlier->high();
}

/// Values [16 i + p * lanes, 16 i + (p + 1) * lanes) of a step in w[i], from the bytes of part p.
HWY_INLINE void join_bytes(VU8 low, VU8 high, VF (&w)[4]) {
  const DF d;
  const VU first = hn::BitCast(DU(), hn::InterleaveLower(DU8(), low, high)),
           second = hn::BitCast(DU(), hn::InterleaveUpper(DU8(), low, high));
  const VU upper = hn::Set(DU(), 0xFFFF0000u);
  w[0] = hn::BitCast(d, hn::ShiftLeft<16>(first));
  w[1] = hn::BitCast(d, hn::And(first, upper));
  w[2] = hn::BitCast(d, hn::ShiftLeft<16>(second));
  w[3] = hn::BitCast(d, hn::And(second, upper));
}

/// Row r of a step, whose high bytes are known.
template <std::size_t r>
HWY_INLINE void step_values(const std::uint8_t* step, std::size_t p, VU8 high, VF (&w)[4]) {
  join_bytes(hn::LoadU(DU8(), step + r * Packed12Panel::step + p * 4 * lanes), high, w);
}

/// The spans of ops-inl.hpp, in steps from the beginning of a matrix.
struct Packed12Walk {
  static constexpr std::size_t span = min_span / Packed12Panel::step_bytes + 1;

  const std::uint8_t* data;
  std::size_t steps;  // of all panels

  /// Steps from number `at` on that one Ahead serves, half a step further for each.
  [[nodiscard]] HWY_INLINE static std::size_t together(std::size_t at) { return 2 * span - at % (2 * span); }
  [[nodiscard]] HWY_INLINE Ahead ahead_of(std::size_t at) const {
    return Ahead::of(data, at * Packed12Panel::step_bytes, steps * Packed12Panel::step_bytes,
                     span * Packed12Panel::step_bytes);
  }
};

/// Asks for the part of what a step has that falls to row r of four, a line at a time.
template <std::size_t r>
HWY_INLINE void ask_for_row(const Ahead& ahead) {
  constexpr std::size_t lines = Packed12Panel::step_bytes / 64;
  stay_here();
  MICA_UNROLL
  for (std::size_t line = lines * r / Packed12Panel::quad_rows;
       line < lines * (r + 1) / Packed12Panel::quad_rows; ++line)
    prefetch(ahead.place[line % 2], line / 2 * 64);
}

/// The next step's places.
HWY_INLINE void go_on(Ahead& ahead) {
  for (const std::uint8_t*& place : ahead.place) place += Packed12Panel::step_bytes / 2;
}

/// Tokens that meet the rows as they come from memory: their chains fill the registers.
inline constexpr std::size_t packed12_few_tokens = parts == 1 ? 4 : 1;

template <std::size_t tokens>
using QuadChains = VF[tokens][Packed12Panel::quad_rows][parts];

/// Four rows of a step times 64 activations of every token, from value k on.
template <bool has_outliers, std::size_t tokens>
HWY_INLINE void extend_quad(const std::uint8_t* step, VU8 table, const StepBytes& bytes, const Ahead& ahead,
                            const float* const* x, std::size_t k, QuadChains<tokens>& c) {
  MICA_UNROLL
  for (std::size_t p = 0; p < parts; ++p) {
    for_quad_rows([&](auto row) HWY_ATTR {
      constexpr std::size_t r = decltype(row)::value;
      if (p == 0) ask_for_row<r>(ahead);
      VU8 high;
      if constexpr (has_outliers) {
        high = hn::Load(DU8(), bytes.high[r] + p * 4 * lanes);
      } else {
        high = high_bytes<r>(step, p, table);
      }
      VF w[4];
      step_values<r>(step, p, high, w);
      MICA_UNROLL
      for (std::size_t t = 0; t < tokens; ++t) {
        MICA_UNROLL
        for (std::size_t i = 0; i < 4; ++i)
          c[t][r][p] = hn::MulAdd(w[i], load(x[t] + k + 16 * i + p * lanes), c[t][r][p]);
      }
    });
  }
}

/// The chains of one quad, from nothing. `at`: its first step.
template <std::size_t tokens>
HWY_NOINLINE void quad_chains(const Packed12Walk& walk, std::size_t at, const std::byte* panel,
                              std::size_t quad, std::size_t cols, const float* const* activations,
                              RowChains* chains) {
  const VU8 table = listed_bytes(panel);
  const std::uint8_t* w = walk.data + at * Packed12Panel::step_bytes;
  const std::size_t steps = cols / Packed12Panel::step;
  auto outliers = Packed12Panel::outliers(panel, quad);
  const float* x[tokens];
  QuadChains<tokens> c;
  MICA_UNROLL
  for (std::size_t t = 0; t < tokens; ++t) x[t] = activations[t];
  clear(c);
  StepBytes bytes;
  for (std::size_t s = 0; s < steps;) {
    Ahead ahead = walk.ahead_of(at + s);
    const std::size_t end = HWY_MIN(steps, s + walk.together(at + s));
    const std::size_t stop = outliers.begin == outliers.end ? end : HWY_MIN(end, outliers.begin->step());
    for (; s < stop; ++s, w += Packed12Panel::step_bytes, go_on(ahead))
      extend_quad<false, tokens>(w, table, bytes, ahead, x, s * Packed12Panel::step, c);
    if (s == end) continue;
    const auto* const first = outliers.begin;
    while (outliers.begin != outliers.end && outliers.begin->step() == s) ++outliers.begin;
    restore_step(w, table, Packed12Panel::Outliers{first, outliers.begin}, bytes);
    extend_quad<true, tokens>(w, table, bytes, ahead, x, s * Packed12Panel::step, c);
    ++s, w += Packed12Panel::step_bytes;
  }
  MICA_UNROLL
  for (std::size_t t = 0; t < tokens; ++t) {
    MICA_UNROLL
    for (std::size_t r = 0; r < Packed12Panel::quad_rows; ++r) {
      MICA_UNROLL
      for (std::size_t p = 0; p < parts; ++p)
        hn::Store(c[t][r][p], DF(), chains[t].c[quad * Packed12Panel::quad_rows + r] + p * lanes);
    }
  }
}

/// The outputs of panel p for one token.
template <class C>
HWY_INLINE void finish_panel(const MatmulArgs<C>& a, std::size_t p, std::size_t token,
                             const RowChains& chains) {
  alignas(64) float products[panel_rows];
  finish_rows(chains, panel_rows, false, products);
  write_panel(a, p, token, products);
}

/// All tokens, at most packed12_few_tokens, and rows [a.first, end).
template <std::size_t tokens, class C>
HWY_NOINLINE void matmul_packed12_once(const MatmulArgs<C>& a, std::size_t end) {
  const std::size_t cols = a.w.cols(), steps = Packed12Panel::quad_steps(cols, Packed12Panel::quads);
  const Packed12Walk walk{reinterpret_cast<const std::uint8_t*>(a.w.panel(0)),
                          a.w.packed_rows() / panel_rows * steps};
  const float* x[tokens];
  for (std::size_t t = 0; t < tokens; ++t) x[t] = a.x.values[t].data();
  for (std::size_t p = a.first / panel_rows; p * panel_rows < end; ++p) {
    const std::byte* const panel = a.w.panel(p);
    prefetch(panel, Packed12Panel::bytes(cols));  // the next one's head
    for (std::size_t s = 0; s < Packed12Panel::head_steps(cols); ++s) {
      const Ahead ahead = walk.ahead_of(p * steps + s);
      for_quad_rows([&](auto r) HWY_ATTR { ask_for_row<decltype(r)::value>(ahead); });
    }
    RowChains chains[tokens];
    for (std::size_t quad = 0; quad < Packed12Panel::quads; ++quad)
      quad_chains<tokens>(walk, p * steps + Packed12Panel::quad_steps(cols, quad), panel, quad, cols, x,
                          chains);
    for (std::size_t t = 0; t < tokens; ++t) finish_panel(a, p, t, chains[t]);
  }
}

/// Some values of all rows of a panel, in whole steps.
struct Packed12Run {
  const std::byte* panel;
  std::size_t cols, k, n;

  [[nodiscard]] HWY_INLINE const std::uint8_t* steps_of(std::size_t quad) const {
    return reinterpret_cast<const std::uint8_t*>(panel) + Packed12Panel::quad_at(cols, quad) +
           k / Packed12Panel::step * Packed12Panel::step_bytes;
  }
};

/// Row r of a run goes to out + r * stride. What lies as `next` is asked for.
template <std::size_t stride>
HWY_NOINLINE void decode_run(const Packed12Run& run, const Packed12Run& next, float* out) {
  const VU8 table = listed_bytes(run.panel);
  const std::size_t first = run.k / Packed12Panel::step, steps = run.n / Packed12Panel::step;
  for (std::size_t quad = 0; quad < Packed12Panel::quads; ++quad) {
    const std::uint8_t *step = run.steps_of(quad), *ask = next.steps_of(quad);
    float* const rows = out + quad * Packed12Panel::quad_rows * stride;
    for (std::size_t s = 0; s < steps;
         ++s, step += Packed12Panel::step_bytes, ask += Packed12Panel::step_bytes) {
      for (std::size_t line = 0; line < Packed12Panel::step_bytes; line += 64) prefetch(ask, line);
      for_quad_rows([&](auto row) HWY_ATTR {
        constexpr std::size_t r = decltype(row)::value;
        MICA_UNROLL
        for (std::size_t p = 0; p < parts; ++p) {
          VF w[4];
          step_values<r>(step, p, high_bytes<r>(step, p, table), w);
          MICA_UNROLL
          for (std::size_t i = 0; i < 4; ++i)
            hn::StoreU(w[i], DF(), rows + r * stride + s * Packed12Panel::step + 16 * i + p * lanes);
        }
      });
    }
    const auto [begin, end] = Packed12Panel::outliers(run.panel, quad, first, first + steps);
    for (const auto* outlier = begin; outlier != end; ++outlier) {
      float& value = rows[outlier->row() * stride + (outlier->step() - first) * Packed12Panel::step +
                          Packed12Panel::value(outlier->place())];
      std::uint32_t bits;
      hwy::CopyBytes<4>(&value, &bits);
      bits = (bits & 0x00FF0000u) | static_cast<std::uint32_t>(outlier->high()) << 24;
      hwy::CopyBytes<4>(&bits, &value);
    }
  }
}

/// Up to real_block tokens, beginning at `token`, and rows [a.first, end).
template <class C>
HWY_NOINLINE void matmul_packed12_block(const MatmulArgs<C>& a, std::size_t end, std::size_t token,
                                        std::size_t n) {
  RowChains chains[real_block + 1];  // one more: the last tile asks for what is behind its chains
  alignas(64) float values[panel_rows][real_run];
  const float* rows[panel_rows];
  const float* x[real_tokens];
  const std::size_t cols = a.w.cols();
  for (std::size_t r = 0; r < panel_rows; ++r) rows[r] = values[r];
  for (std::size_t p = a.first / panel_rows; p * panel_rows < end; ++p) {
    std::fill_n(&chains[0].c[0][0], n * panel_rows * 16, 0.0f);
    for (std::size_t k = 0, run = 0; k < cols; k += run) {
      run = HWY_MIN(cols - k, real_run);
      const Packed12Run now{a.w.panel(p), cols, k, run};
      const bool last = k + run == cols;
      decode_run<real_run>(now, {last ? a.w.panel(p + 1) : a.w.panel(p), cols, last ? 0 : k + run, run},
                           values[0]);
      for (std::size_t t = 0, tokens = 0; t < n; t += tokens) {
        tokens = even_part(n - t, real_tokens);
        for (std::size_t i = 0; i < tokens; ++i) x[i] = a.x.values[token + t + i].data() + k;
        extend_rows<Walk::again, format::F32>(tokens, rows, panel_rows, x, run, {}, chains + t);
      }
    }
    for (std::size_t t = 0; t < n; ++t) finish_panel(a, p, token + t, chains[t]);
  }
}

/// Many tokens by kernel/fast8.hpp.
template <class C>
void matmul_packed12_fast8(const MatmulArgs<C>& a, std::size_t end) {
  const auto fill = [&](std::size_t p, std::size_t b, std::size_t, Panel<EightBits>& panel) HWY_ATTR {
    alignas(64) float values[panel_rows][fast8_group];
    const std::size_t k = b * fast8_group, n = HWY_MIN(fast8_group, a.w.cols() - k);
    const Packed12Run run{a.w.panel(p), a.w.cols(), k, n};
    decode_run<fast8_group>(run, {run.panel, run.cols, run.k + run.n, run.n}, values[0]);
    round_panel([&](std::size_t r) { return values[r]; }, n, panel);
  };
  multiply_panels<EightBits>({a.x.codes, a.y, ceil_div(a.w.cols(), fast8_group), a.first, end, a.add}, fill);
}

template <class C>
void matmul_packed12(const MatmulArgs<C>& a) {
  const std::size_t n = a.y.rows(), packed = a.w.packed_rows(), end = HWY_MIN(a.last, packed);
  if (a.last > packed) {
    const auto tail = tail_product(a);
    is_fast8(a) ? matmul_real_fast8(tail) : matmul_real(tail);
  }
  if (a.first >= end || n == 0) return;
  if (is_fast8(a)) return matmul_packed12_fast8(a, end);
  if (n <= packed12_few_tokens) {
    return with_constant<packed12_few_tokens>(
        n, [&](auto tokens) HWY_ATTR { matmul_packed12_once<tokens>(a, end); });
  }
  for (std::size_t t = 0, tokens = 0; t < n; t += tokens) {
    tokens = even_part(n - t, real_block);
    matmul_packed12_block(a, end, t, tokens);
  }
}

}  // namespace MICA_PER_TARGET
HWY_AFTER_NAMESPACE();
#endif  // MICA_VECTORS
#endif
