// SPDX-License-Identifier: Apache-2.0
//
// Per target: products with packed rows (tensor/detail/rows16.hpp). Lanes are rows from the beginning: a line
// of codes is loaded and meets four broadcast bytes of each token, and no sum crosses lanes.
//
//   few tokens    the lines go from memory to the dots, one stream per panel; they are asked for some KiB
//                 ahead, or those of one token are read in order (reading.hpp)
//   many tokens   panels are filled with lines instead of unpacked rows, the rest is as in integer-inl.hpp

#if defined(MICA_KERNEL_HIGHWAY_PACKED_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_KERNEL_HIGHWAY_PACKED_INL_HPP
#undef MICA_KERNEL_HIGHWAY_PACKED_INL_HPP
#else
#define MICA_KERNEL_HIGHWAY_PACKED_INL_HPP
#endif

#include "mica/kernel/highway/integer-inl.hpp"
#include "mica/kernel/highway/reading.hpp"

#if MICA_VECTORS
HWY_BEFORE_NAMESPACE();
namespace MICA_PER_TARGET {

using tensor::Rows16;
static_assert(Rows16::rows == panel_rows);

/// Blocks that have their scales together: a chunk is never cut by a stretch.
template <IntegerFormat F>
inline constexpr std::size_t packed_blocks = Chunk<F>::blocks;

/// The span of ops-inl.hpp: whole stretches, 16 to 32 KiB of them.
template <IntegerFormat F>
inline constexpr std::size_t packed_span = [] {
  std::size_t bytes = Rows16::stretch<F>() * panel_rows * sizeof(typename F::Block);
  while (bytes < min_span) bytes *= 2;
  return bytes;
}();

/// Asks for as many lines as rows [r, r + lanes) of the chunk's values [k, k + values) fill, even ones at the
/// first place and odd ones at the second. Asked for in greater numbers they fill the core's buffers, and
/// memory rests until the next time.
template <IntegerFormat F, std::size_t values>
HWY_INLINE void ask_lines(const Ahead& ahead, std::size_t r, std::size_t k) {
  constexpr std::size_t row_bytes = sizeof(typename F::Block), line_rows = 64 * F::block_size / values;
  const std::size_t row = panel_rows * (k / values) + r;
  const std::size_t first = row * row_bytes / line_rows, last = (row + lanes) * row_bytes / line_rows;
  stay_here();
  MICA_UNROLL
  for (std::size_t i = 0; i < lanes * row_bytes / line_rows + 1; ++i) {
    const std::size_t line = first + i;
    if (line < last) prefetch(ahead.place[line % 2], line / 2 * 64);
  }
}

/// Asks for memory ahead before value i of 32, of which the first is value k of the chunk.
template <IntegerFormat F>
struct AskAhead {
  const Ahead& ahead;
  std::size_t r, k;
  HWY_INLINE void operator()(std::size_t i) const { ask_lines<F, 4 * line_words<quads<F>>>(ahead, r, k + i); }
};

/// Lines w of period s, from value `first` on.
template <IntegerFormat F, std::size_t first, std::size_t... w>
HWY_INLINE void load_lines(const std::uint8_t* p, std::size_t s, VU8 (&lines)[sizeof...(w)],
                           std::index_sequence<w...>) {
  ((lines[w] = machine_codes<F>(Codec<F>::template line<first + 4 * w>(p, s))), ...);
}

/// Adds the dots of a group, whose first value is `first` of period s, for every token. x[t]: codes of the
/// period. ask(i): memory ahead is asked for, before value i of 32.
template <IntegerFormat F, std::size_t first, std::size_t tokens, class Ask, std::size_t... q>
HWY_INLINE void dot_lines(const std::uint8_t* p, std::size_t s, const std::int8_t* const (&x)[tokens],
                          const Ask& ask, VI (&sum)[tokens], std::index_sequence<q...>) {
  constexpr std::size_t words = line_words<quads<F>>;
  const auto dot_some = [&](auto at) HWY_ATTR {
    constexpr std::size_t i = decltype(at)::value;
    VU8 w[words];
    keep_order();
    ask(i % 32);
    load_lines<F, i>(p, s, w, std::make_index_sequence<words>());
    MICA_UNROLL
    for (std::size_t t = 0; t < tokens; ++t) sum[t] = dot_words<F::code_max, quads<F>>(w, x[t] + i, sum[t]);
  };
  (dot_some(std::integral_constant<std::size_t, first + 4 * words * q>()), ...);
}

/// What one chunk of 16 rows and the tokens that meet it have in common.
template <IntegerFormat F, std::size_t tokens>
struct PackedChunk {
  ChunkScales<F> w;
  Ahead ahead;
  const std::int8_t* codes[tokens];
  float scale[tokens][Chunk<F>::values / 32];
  float min_factor[tokens][F::has_mins ? Chunk<F>::groups : 1];
  std::int32_t start[tokens][bias<F> != 0 ? Chunk<F>::groups : 1];

  /// n blocks of tokens [token, token + tokens), from value k on.
  HWY_INLINE void gather(const QuantizedRows& x, std::size_t token, std::size_t k, std::size_t n) {
    for (std::size_t t = 0; t < tokens; ++t) {
      const TokenChunk chunk = chunk_of(x, token + t, k);
      codes[t] = chunk.codes;
      if (Chunk<F>::values == 256 && n == Chunk<F>::blocks) {
        gather_factors_whole<F>(chunk, {scale[t], min_factor[t], start[t]});
      } else {
        gather_factors<F>(chunk, n, {scale[t], min_factor[t], start[t]});
      }
    }
  }
};

/// The integer sums of a group of F::group values, minus the bias.
template <IntegerFormat F, std::size_t first, std::size_t tokens, class Ask>
HWY_INLINE void packed_group(const std::uint8_t* p, std::size_t s, const PackedChunk<F, tokens>& c,
                             const std::int8_t* const (&x)[tokens], std::size_t group, const Ask& ask,
                             VF (&sum)[tokens]) {
  VI isum[tokens];
  MICA_UNROLL
  for (std::size_t t = 0; t < tokens; ++t)
    isum[t] = bias<F> != 0 ? hn::Set(DI(), c.start[t][bias<F> != 0 ? group : 0]) : hn::Zero(DI());
  dot_lines<F, first>(p, s, x, ask, isum, std::make_index_sequence<F::group / 4 / line_words<quads<F>>>());
  MICA_UNROLL
  for (std::size_t t = 0; t < tokens; ++t) sum[t] = hn::ConvertTo(DF(), isum[t]);
}

/// 32 values of the chunk, from value `first` of period s on; `at` counts groups of 32 in the chunk.
template <IntegerFormat F, std::size_t first, std::size_t tokens>
HWY_INLINE void packed_32(const std::uint8_t* p, std::size_t s, std::size_t r,
                          const PackedChunk<F, tokens>& c, const std::int8_t* const (&x)[tokens],
                          std::size_t at, VF (&acc)[tokens], VF (&mac)[tokens]) {
  const DF d;
  constexpr std::size_t groups = 32 / F::group;
  const AskAhead<F> ask{c.ahead, r, 32 * at};
  VF sum[tokens];
  packed_group<F, first>(p, s, c, x, groups * at, ask, sum);
  if constexpr (!Codec<F>::unit_scales) {
    const VF scale = hn::Load(d, c.w.scale[groups * at] + r);
    MICA_UNROLL
    for (std::size_t t = 0; t < tokens; ++t) sum[t] = hn::Mul(sum[t], scale);
  }
  if constexpr (groups == 2) {
    VF second[tokens];
    packed_group<F, first + 16>(p, s, c, x, groups * at + 1, ask, second);
    const VF scale = hn::Load(d, c.w.scale[groups * at + 1] + r);
    MICA_UNROLL
    for (std::size_t t = 0; t < tokens; ++t) sum[t] = hn::MulAdd(second[t], scale, sum[t]);
  }
  MICA_UNROLL
  for (std::size_t t = 0; t < tokens; ++t) acc[t] = hn::MulAdd(hn::Set(d, c.scale[t][at]), sum[t], acc[t]);
  for (std::size_t g = groups * at; F::has_mins && g < groups * (at + 1); ++g) {
    const VF min = hn::Load(d, c.w.min[F::has_mins ? g : 0] + r);
    MICA_UNROLL
    for (std::size_t t = 0; t < tokens; ++t)
      mac[t] = hn::MulAdd(min, hn::Set(d, c.min_factor[t][F::has_mins ? g : 0]), mac[t]);
  }
}

/// Period s of a block whose first value is value k of the chunk, rows [r, r + lanes). p: the block's codes,
/// of row r.
template <IntegerFormat F, std::size_t tokens, std::size_t... i>
HWY_INLINE void packed_period(const std::uint8_t* p, std::size_t s, std::size_t r, std::size_t k,
                              const PackedChunk<F, tokens>& c, VF (&acc)[tokens], VF (&mac)[tokens],
                              std::index_sequence<i...>) {
  const std::int8_t* x[tokens];
  k += s * Codec<F>::period;
  MICA_UNROLL
  for (std::size_t t = 0; t < tokens; ++t) x[t] = c.codes[t] + k;
  (packed_32<F, 32 * i>(p, s, r, c, x, k / 32 + i, acc, mac), ...);
}

/// Adds block b of the chunk to y[t][r], rows [r, r + lanes). p: its codes, of row r.
template <IntegerFormat F, std::size_t tokens>
HWY_INLINE void packed_block(const std::uint8_t* p, std::size_t b, std::size_t r,
                             const PackedChunk<F, tokens>& c, float (&y)[tokens][panel_rows]) {
  const DF d;
  constexpr std::size_t periods = F::block_size / Codec<F>::period;
  constexpr auto groups = std::make_index_sequence<Codec<F>::period / 32>();
  const std::size_t k = b * F::block_size;
  VF acc[tokens], mac[tokens];
  clear(acc);
  clear(mac);
  if constexpr (tokens == 1) {
    MICA_UNROLL
    for (std::size_t s = 0; s < periods; ++s) packed_period(p, s, r, k, c, acc, mac, groups);
  } else {
    for (std::size_t s = 0; s < periods; ++s) packed_period(p, s, r, k, c, acc, mac, groups);
  }
  MICA_UNROLL
  for (std::size_t t = 0; t < tokens; ++t) {
    VF product = hn::MulAdd(hn::Load(d, c.w.d[b] + r), acc[t], hn::Load(d, y[t] + r));
    if constexpr (F::has_mins) product = hn::NegMulAdd(hn::Load(d, c.w.dmin[b] + r), mac[t], product);
    hn::Store(product, d, y[t] + r);
  }
}

/// Adds block b of the chunk to y[t][16]. codes: those of the chunk.
template <IntegerFormat F, std::size_t tokens>
HWY_INLINE void packed_block(const std::uint8_t* codes, std::size_t b, const PackedChunk<F, tokens>& c,
                             float (&y)[tokens][panel_rows]) {
  for (std::size_t r = 0; r < panel_rows; r += lanes)
    packed_block(codes + b * panel_rows * F::code_bytes + 4 * r, b, r, c, y);
}

/// The outputs of panel p for tokens [token, token + tokens) that a slice asks for. A worker mostly
/// multiplies the next rows afterwards, so those are prefetched too, if they are read apart.
template <std::size_t tokens, class P>
HWY_NOINLINE void packed_outputs(const MatmulArgs<P>& a, std::size_t p, std::size_t token, Reading reading) {
  using F = typename P::File;
  constexpr std::size_t block_bytes = panel_rows * sizeof(typename F::Block);
  const std::size_t blocks = a.w.blocks_per_row();
  const std::size_t all_bytes = a.w.packed_rows() * blocks * sizeof(typename F::Block);
  const auto* const data = reinterpret_cast<const std::uint8_t*>(a.w.panel(0));
  const std::uint8_t* const panel = data + p * blocks * block_bytes;
  alignas(64) float y[tokens][panel_rows];
  for (std::size_t t = 0; t < tokens; ++t) std::fill_n(y[t], panel_rows, 0.0f);
  PackedChunk<F, tokens> c;
  for (std::size_t b = 0; b < blocks; b += packed_blocks<F>) {
    const std::size_t n = HWY_MIN(packed_blocks<F>, blocks - b);
    const Rows16::Place at = Rows16::place<F>(blocks, b);
    const std::uint8_t* const codes = panel + at.codes;
    const std::size_t passed = (p * blocks + b) * block_bytes;
    if (reading == Reading::apart) {
      c.ahead = Ahead::of(data, passed, all_bytes, packed_span<F>);
    } else {
      c.ahead = Ahead::nowhere(codes);
      read_lines(codes, n * block_bytes);  // two blocks at once, where scales lie behind both, were slower
    }
    c.gather(a.x.codes, token, b * F::block_size, n);
    Codec<F>::packed_scales(panel + at.scales, n, c.w);
    // One token waits for memory alone, and asks best where the compiler knows all places.
    if (tokens == 1 && n == packed_blocks<F>) {
      MICA_UNROLL
      for (std::size_t i = 0; i < packed_blocks<F>; ++i) packed_block(codes, i, c, y);
    } else {
      for (std::size_t i = 0; i < n; ++i) packed_block(codes, i, c, y);
    }
  }
  for (std::size_t t = 0; t < tokens; ++t) write_panel(a, p, token + t, y[t]);
}

/// At most this many tokens meet a panel four at a time: it comes from memory once and from the cache again.
/// More tokens fill panels, and min_matrix_tokens is the next number.
inline constexpr std::size_t packed_few_tokens = min_matrix_tokens - 1;

template <class P>
void packed_one(const MatmulArgs<P>& a, std::size_t end) {
  using F = typename P::File;
  const std::size_t panel_bytes = panel_rows * a.w.blocks_per_row() * sizeof(typename F::Block);
  const std::size_t first = a.first / panel_rows, last = (end + panel_rows - 1) / panel_rows;
  const auto read = [&](std::size_t p, std::size_t p_end, Reading reading) HWY_ATTR {
    for (; p < p_end; ++p) packed_outputs<1>(a, p, 0, reading);
  };
  ReadingChoice& choice = reading_choice<F>();
  if (a.w.packed_rows() / panel_rows * panel_bytes < min_timed_matrix) return read(first, last, choice.get());
  read_in_turns(choice, first, last, panel_bytes, read);
}

template <class P>
void packed_few(const MatmulArgs<P>& a, std::size_t end) {
  const std::size_t n = a.y.rows();
  if (n == 1) return packed_one(a, end);
  for (std::size_t p = a.first / panel_rows; p * panel_rows < end; ++p) {
    for (std::size_t t = 0; t < n; t += 4) {
      with_constant<4>(HWY_MIN(n - t, std::size_t{4}),
                       [&](auto tokens) HWY_ATTR { packed_outputs<tokens>(a, p, t, Reading::apart); });
    }
  }
}

/// Packed rows as a source of panels.
template <IntegerFormat F, std::size_t... i>
HWY_INLINE void fill_lines(const std::uint8_t* codes, std::size_t line, std::size_t s, std::size_t r,
                           Panel<F>& panel, std::index_sequence<i...>) {
  (panel.set(line + i, r, Codec<F>::template line<4 * i>(codes, s)), ...);
}

template <class P>
HWY_INLINE void packed_many(const MatmulArgs<P>& a, std::size_t end) {
  using F = typename P::File;
  constexpr std::size_t block_bytes = panel_rows * sizeof(typename F::Block);
  const std::size_t blocks = a.w.blocks_per_row();
  const auto fill = [&](std::size_t p, std::size_t b, std::size_t n, Panel<F>& panel) HWY_ATTR {
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(a.w.panel(p));
    const Rows16::Place at = Rows16::place<F>(blocks, b);
    // The same chunk of the next panel: so far behind that no machine fetches it by itself.
    const std::uint8_t* const next = bytes + at.codes + blocks * block_bytes;
    Codec<F>::packed_scales(bytes + at.scales, n, panel.scales);
    for (std::size_t k = 0; k < n * F::block_size; k += Codec<F>::period) {
      for (std::size_t line = 0; line < block_bytes * Codec<F>::period / F::block_size; line += 64)
        prefetch(next + block_bytes * k / F::block_size, line);
      const std::uint8_t* const codes = bytes + at.codes + k / F::block_size * panel_rows * F::code_bytes;
      for (std::size_t r = 0; r < panel_rows; r += lanes) {
        fill_lines<F>(codes + 4 * r, k / 4, k % F::block_size / Codec<F>::period, r, panel,
                      std::make_index_sequence<Codec<F>::period / 4>());
      }
    }
  };
  multiply_many<F>({a.x.codes, a.y, blocks, a.first, end, a.add}, is_fast8(a), fill);
}

/// Rounded rows as a source of panels, which they are already.
template <class P>
struct RoundedPanels {
  const tensor::Matrix<P>& w;

  using F = typename P::File;
  [[nodiscard]] HWY_INLINE const std::uint8_t* panel(std::size_t p) const {
    return reinterpret_cast<const std::uint8_t*>(w.panel(p));
  }
  HWY_INLINE void operator()(std::size_t p, std::size_t chunk, std::size_t, Panel<EightBits>& to) const {
    const Rows16::Place at = tensor::rounded_place<F>(w.cols(), chunk);
    const std::uint8_t* const codes = panel(p) + at.codes;
    const std::size_t lines = HWY_MIN(fast8_group, w.cols() - chunk * fast8_group) / 4;
    for (std::size_t line = 0; line < lines; ++line) {
      prefetch(codes + 64 * line, Rows16::panel_bytes<F>(w.cols()));  // the same chunk of the next panel
      for (std::size_t r = 0; r < panel_rows; r += lanes)
        to.set(line, r, hn::LoadU(DU8(), codes + 64 * line + 4 * r));
    }
    std::memcpy(to.scales.d[0], panel(p) + at.scales, sizeof to.scales.d[0]);
  }
  [[nodiscard]] HWY_INLINE PanelPair<EightBits> pair_at(std::size_t p, std::size_t p_end,
                                                        std::size_t chunk) const {
    const Rows16::Place at = tensor::rounded_place<F>(w.cols(), chunk);
    return {panel(p) + at.codes, reinterpret_cast<const ChunkScales<EightBits>*>(panel(p) + at.scales),
            p + 1 < p_end ? Rows16::panel_bytes<F>(w.cols()) : 0};
  }
};

template <class P>
void matmul_packed(const MatmulArgs<P>& a) {
  const std::size_t packed = a.w.packed_rows(), end = HWY_MIN(a.last, packed);
  if (a.last > packed) matmul_integer(tail_product(a));
  if (a.first >= end) return;
  if constexpr (tensor::is_rounded<P>) {
    const std::size_t chunks = ceil_div(a.w.cols(), fast8_group);
    return multiply_panels<EightBits>({a.x.codes, a.y, chunks, a.first, end, a.add}, RoundedPanels<P>{a.w});
  }
  if (a.y.rows() <= packed_few_tokens && !is_fast8(a)) return packed_few(a, end);
  packed_many(a, end);
}

}  // namespace MICA_PER_TARGET
HWY_AFTER_NAMESPACE();
#endif  // MICA_VECTORS
#endif
