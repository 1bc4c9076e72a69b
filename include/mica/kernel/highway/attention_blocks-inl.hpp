// SPDX-License-Identifier: Apache-2.0
//
// Per target: attention over keys and values in blocks of 32 (format/detail/block_element.hpp). Scores have
// tokens in lanes and multiply codes as bytes by the two bytes of a 15-bit query, which is exact; values have
// dimensions in lanes. Codes become numbers in registers and are shared by up to four rows. Limit: where a
// target leaves it open whether a machine has dots of four bytes (dots-inl.hpp), they go by pairs.

#if defined(MICA_KERNEL_HIGHWAY_ATTENTION_BLOCKS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_KERNEL_HIGHWAY_ATTENTION_BLOCKS_INL_HPP
#undef MICA_KERNEL_HIGHWAY_ATTENTION_BLOCKS_INL_HPP
#else
#define MICA_KERNEL_HIGHWAY_ATTENTION_BLOCKS_INL_HPP
#endif

#include "mica/kernel/highway/attention_tiles-inl.hpp"
#include "mica/kernel/highway/dots-inl.hpp"

#if MICA_VECTORS
HWY_BEFORE_NAMESPACE();
namespace MICA_PER_TARGET {

/// Rotates a head (format/detail/rotation.hpp).
inline void rotate_head(const float* x, std::size_t n, float* out) {
  const DF d;
  alignas(64) float buffer[2][max_head_dim];
  std::size_t first = 0;
  for (; n - first >= 2 * lanes;) {
    const std::size_t part = std::bit_floor(n - first);
    float *now = buffer[0], *next = buffer[1];
    std::copy_n(x + first, part, now);
    for (std::size_t span = 1; span < part; span *= 2) {
      for (std::size_t i = 0; i < part / 2; i += lanes) {
        const VF low = hn::Load(d, now + 2 * i), high = hn::Load(d, now + 2 * i + lanes);
        const VF even = hn::ConcatEven(d, high, low), odd = hn::ConcatOdd(d, high, low);
        hn::Store(hn::Add(even, odd), d, next + i);
        hn::Store(hn::Sub(even, odd), d, next + i + part / 2);
      }
      std::swap(now, next);
    }
    const VF factor = hn::Set(d, format::rotation_factor(part));
    for (std::size_t i = 0; i < part; i += lanes)
      hn::StoreU(hn::Mul(hn::Load(d, now + i), factor), d, out + first + i);
    first += part;
  }
  format::rotate(x + first, n - first, out + first);
}

/// What a nibble and its high bits stand for, plus the offset of the codes unless they are signed.
template <class F, bool is_signed, class D, class V>
HWY_INLINE V block_codes(D d, V nibbles) {
  if constexpr (std::is_same_v<F, format::IQ4_NL>) {
    const hn::RebindToSigned<D> ds;
    const V levels = hn::BitCast(d, hn::LoadDup128(ds, format::IQ4_NL::levels));
    return hn::TableLookupBytes(is_signed ? levels : hn::Add(levels, hn::Set(d, F::code_offset)), nibbles);
  } else {
    return is_signed && F::code_offset != 0 ? hn::Sub(nibbles, hn::Set(d, F::code_offset)) : nibbles;
  }
}

/// The same of Q4_S; `shift` has all bits set where the levels are those of the shifted grid.
template <bool is_signed, class D, class V>
HWY_INLINE V shifted_codes(D d, V nibbles, V shift) {
  using F = format::Q4_S;
  static constexpr auto grids = [] {
    std::array<std::int8_t, 32> out{};
    for (std::size_t i = 0; i < 32; ++i)
      out[i % 2 * 16 + i / 2] = static_cast<std::int8_t>(F::levels[i] + (is_signed ? 0 : F::code_offset));
    return out;
  }();
  const hn::RebindToSigned<D> ds;
  const auto level = [&](std::size_t grid) HWY_ATTR {
    return hn::TableLookupBytes(hn::BitCast(d, hn::LoadDup128(ds, grids.data() + grid)), nibbles);
  };
  return hn::IfVecThenElse(shift, level(16), level(0));
}

template <class F>
inline constexpr bool has_shifts = std::is_same_v<F, format::Q4_S>;

/// The fields d of Q4_S, lanes are tokens.
HWY_INLINE VU load_words(const Half* p) {
  const hn::Rebind<std::uint16_t, DF> d16;
  return hn::PromoteTo(DU(), hn::LoadU(d16, reinterpret_cast<const std::uint16_t*>(p)));
}

/// Scales of eight bits (format/q4_s.hpp).
HWY_INLINE VF scales_of_bytes(VU bits) {
  using F = format::Q4_S;
  const DU d;
  const VF scale = hn::BitCast(DF(), hn::ShiftLeft<20>(hn::Add(bits, hn::Set(d, F::scale_bias))));
  const auto zero = hn::RebindMask(DF(), hn::Eq(bits, hn::Zero(d)));
  const auto none = hn::RebindMask(DF(), hn::Eq(bits, hn::Set(d, F::no_number)));
  return hn::IfThenElse(none, hn::Set(DF(), std::bit_cast<float>(0x7FC00000u)),
                        hn::IfThenZeroElse(zero, scale));
}

/// The scales of as many tokens as a vector has lanes.
template <class F>
HWY_INLINE VF load_scales(const Half* p) {
  if constexpr (has_shifts<F>) {
    return scales_of_bytes(hn::And(load_words(p), hn::Set(DU(), 255)));
  } else {
    return load(p);
  }
}

// ---- scores

/// A 15-bit query in two signed bytes: code = 128 * high + low.
struct ByteQuery {
  std::int8_t high[max_head_dim];
  std::int8_t low[max_head_dim];
  std::int32_t sum[max_head_dim / 32];  // of the codes of a block
  float scale;
};

inline void split_query(const float* q, std::size_t head_dim, bool rotated, ByteQuery& out) {
  float turned[max_head_dim];
  if (rotated) {
    rotate_head(q, head_dim, turned);
    q = turned;
  }
  IntegerRow whole;
  quantize_row(q, head_dim, query_top, whole);
  out.scale = whole.scale;
  for (std::size_t b = 0; b < (head_dim + 31) / 32; ++b) {
    std::int32_t sum = 0;
    for (std::size_t i = 32 * b; i < 32 * b + 32; ++i) {
      const int code = whole.code[i];
      const int high = HWY_MIN(HWY_MAX((code + 64) >> 7, -127), 127);
      out.high[i] = static_cast<std::int8_t>(high);
      out.low[i] = static_cast<std::int8_t>(code - 128 * high);
      sum += code;
    }
    out.sum[b] = sum;
  }
}

/// The exact sum of the products of 32 codes with one byte of a query, four at a time.
template <int code_max>
class BlockSum {
 public:
  /// Dot `i` of eight, in order.
  HWY_INLINE void add(std::size_t i, VU8 codes, VI8 query) {
    if constexpr (together == 1) {
      sum_ = dot4<code_max>(codes, query, i == 0 ? hn::Zero(DI()) : sum_);
      keep(sum_);
    } else {
      pairs_ = i % together == 0 ? dot2(codes, query) : dot2(codes, query, pairs_);
      if (i % together == together - 1) sum_ = add_pairs(pairs_, i < together ? hn::Zero(DI()) : sum_);
    }
  }
  [[nodiscard]] HWY_INLINE VI sum() const { return sum_; }

 private:
  static constexpr std::size_t together = std::bit_floor(HWY_MIN(paired_dots<code_max>, std::size_t{8}));
  static_assert(8 % together == 0);

  VI sum_;
  Pairs pairs_;
};

template <std::size_t rows, std::size_t blocks, class F>
HWY_INLINE void block_scores(const AttentionArgs& a, const std::size_t* row, const ByteQuery* q,
                             const Block* block) {
  using E = format::Plain<F>;
  constexpr bool is_signed = signed_codes<F::code_max>;
  const DF d;
  const DU8 d8;
  const std::byte* tile[blocks];
  std::size_t ahead[blocks];
  VF c[rows][blocks];
  for (std::size_t k = 0; k < blocks; ++k) {
    tile[k] = a.tiles[block[k].tile];
    ahead[k] = distance_ahead(a, block[k].tile, row[0] < 4);
  }
  clear(c);
  const std::size_t count = E::blocks(a.head_dim);
  for (std::size_t b = 0; b < count; ++b) {
    BlockSum<F::code_max> high[rows][blocks], low[rows][blocks];
    MICA_UNROLL
    for (std::size_t octet = 0; octet < 4; ++octet) {
      VU8 codes[blocks][2];
      MICA_UNROLL
      for (std::size_t k = 0; k < blocks; ++k) {
        const std::size_t part = block[k].part;
        const auto* const bytes =
            reinterpret_cast<const std::uint8_t*>(E::codes(tile[k], b)) + (octet * 16 + part * lanes) * 4;
        prefetch(bytes, ahead[k]);
        const VU8 both = hn::LoadU(d8, bytes);
        codes[k][0] = hn::And(both, hn::Set(d8, 15));
        codes[k][1] = hn::ShiftRight<4>(both);
        if constexpr (E::high_words != 0) {
          constexpr bool pairs = E::high_words == 2;  // of bits, a word for each half of an octet
          MICA_UNROLL
          for (std::size_t half = 0; half < 2; ++half) {
            const std::size_t i = 8 * octet + 4 * half;
            const int shift = pairs ? format::Q6_0::high_shift(i) : static_cast<int>(i / 4);
            const VU bits =
                hn::LoadU(DU(), E::high_bits(tile[k], a.head_dim, b, pairs ? half : 0) + part * lanes);
            const VU mask = hn::Set(DU(), pairs ? 0x03030303U : 0x01010101U);
            const VU found = hn::And(hn::ShiftRightSame(bits, shift), mask);
            codes[k][half] = hn::Or(codes[k][half], hn::BitCast(d8, hn::ShiftLeft<4>(found)));
          }
        }
        MICA_UNROLL
        for (std::size_t half = 0; half < 2; ++half) {
          if constexpr (has_shifts<F>) {
            const VU shifts = load_words(E::scales(tile[k], a.head_dim, b) + part * lanes);
            const auto shifted = hn::TestBit(shifts, hn::Set(DU(), 1u << (8 + 2 * octet + half)));
            codes[k][half] =
                shifted_codes<is_signed>(d8, codes[k][half], hn::BitCast(d8, hn::VecFromMask(DU(), shifted)));
          } else {
            codes[k][half] = block_codes<F, is_signed>(d8, codes[k][half]);
          }
        }
      }
      MICA_UNROLL
      for (std::size_t half = 0; half < 2; ++half) {
        const std::size_t i = b * 32 + octet * 8 + half * 4;
        MICA_UNROLL
        for (std::size_t r = 0; r < rows; ++r) {
          const VI8 q_high = hn::BitCast(DI8(), broadcast4(q[r].high + i));
          const VI8 q_low = hn::BitCast(DI8(), broadcast4(q[r].low + i));
          MICA_UNROLL
          for (std::size_t k = 0; k < blocks; ++k) {
            high[r][k].add(2 * octet + half, codes[k][half], q_high);
            low[r][k].add(2 * octet + half, codes[k][half], q_low);
          }
        }
      }
    }
    MICA_UNROLL
    for (std::size_t k = 0; k < blocks; ++k) {
      const VF scales = load_scales<F>(E::scales(tile[k], a.head_dim, b) + block[k].part * lanes);
      MICA_UNROLL
      for (std::size_t r = 0; r < rows; ++r) {
        VI sum = hn::Add(hn::ShiftLeft<7>(high[r][k].sum()), low[r][k].sum());
        if constexpr (!is_signed && F::code_offset != 0)
          sum = hn::Sub(sum, hn::Set(DI(), F::code_offset * q[r].sum[b]));
        c[r][k] = hn::MulAdd(hn::ConvertTo(d, sum), scales, c[r][k]);
      }
    }
  }
  MICA_UNROLL
  for (std::size_t k = 0; k < blocks; ++k) {
    const std::size_t part = block[k].part;
    for (std::size_t b = 0; E::has_minima && b < count; ++b) {
      const VF minima = load(E::minima(tile[k], a.head_dim, b) + part * lanes);
      MICA_UNROLL
      for (std::size_t r = 0; r < rows; ++r)
        c[r][k] = hn::MulAdd(hn::Set(d, static_cast<float>(q[r].sum[b])), minima, c[r][k]);
    }
    MICA_UNROLL
    for (std::size_t r = 0; r < rows; ++r) {
      store_scores(hn::Mul(c[r][k], hn::Set(d, q[r].scale * a.scale)),
                   slots_in(a.visible[row[r]], block[k].tile), part, a.p[row[r]].data() + block[k].tile * 16);
    }
  }
}

template <std::size_t rows, class F>
HWY_NOINLINE void block_scores_of_rows(const AttentionArgs& a, const std::size_t* row, bool rotated) {
  // A row and a Block have two sums: as many as hide the latency of a dot, or as many as the registers hold.
  constexpr std::size_t together = HWY_MAX(std::size_t{1}, (HWY_TARGET <= HWY_AVX3 ? 4 : 2) / rows);
  ByteQuery q[rows];
  for (std::size_t r = 0; r < rows; ++r) split_query(a.q[row[r]].data(), a.head_dim, rotated, q[r]);
  const SeenTiles seen = seen_by(a, row, rows);
  Block block[chunk_tiles * parts];
  const std::size_t count = seen.count * parts;
  for (std::size_t b = 0; b < count; ++b) block[b] = {seen.tile[b / parts], b % parts};
  std::size_t b = 0;
  for (; b + together <= count; b += together) block_scores<rows, together, F>(a, row, q, block + b);
  if constexpr (together > 1) {
    for (; b < count; ++b) block_scores<rows, 1, F>(a, row, q, block + b);
  }
}

// ---- values

using DBytes = hn::FixedTag<std::uint8_t, 16>;
using VBytes = hn::Vec<DBytes>;

/// Sixteen signed bytes as floats.
template <class V>
HWY_INLINE void floats_of(V bytes, VF* out) {
  const hn::FixedTag<std::int8_t, 16> ds;
  const auto codes = hn::BitCast(ds, bytes);
  if constexpr (parts == 1) {
    out[0] = hn::ConvertTo(DF(), hn::PromoteTo(DI(), codes));
  } else if constexpr (parts == 2) {
    const hn::Half<decltype(ds)> dh;
    out[0] = hn::ConvertTo(DF(), hn::PromoteTo(DI(), hn::LowerHalf(dh, codes)));
    out[1] = hn::ConvertTo(DF(), hn::PromoteTo(DI(), hn::UpperHalf(dh, codes)));
  } else {
    const hn::FixedTag<std::int16_t, 8> d16;
    const auto low = hn::PromoteLowerTo(d16, codes), high = hn::PromoteUpperTo(d16, codes);
    out[0] = hn::ConvertTo(DF(), hn::PromoteLowerTo(DI(), low));
    out[1] = hn::ConvertTo(DF(), hn::PromoteUpperTo(DI(), low));
    out[2] = hn::ConvertTo(DF(), hn::PromoteLowerTo(DI(), high));
    out[3] = hn::ConvertTo(DF(), hn::PromoteUpperTo(DI(), high));
  }
}

/// The fifth bits of 32 codes, at bit 4 of a byte each: those of dimensions 0 to 15, or of 16 to 31.
template <bool upper>
HWY_INLINE VBytes spread_fifth_bits(std::uint32_t bits) {
  alignas(16) static constexpr std::uint8_t bit[16] = {1, 2, 4, 8, 16, 32, 64, 128,
                                                       1, 2, 4, 8, 16, 32, 64, 128};
  alignas(16) static constexpr std::uint8_t at[32] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1,
                                                      2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3};
  const DBytes d;
  const VBytes word = hn::BitCast(d, hn::Set(hn::FixedTag<std::uint32_t, 4>(), bits));
  const VBytes bytes = hn::TableLookupBytes(word, hn::Load(d, at + (upper ? 16 : 0)));
  return hn::IfThenElseZero(hn::TestBit(bytes, hn::Load(d, bit)), hn::Set(d, 16));
}

/// The high bits of 32 codes of six bits, at bits 4 and 5 of a byte each: those of dimensions 0 to 15, or of
/// 16 to 31.
template <bool upper>
HWY_INLINE VBytes spread_high_pairs(std::uint64_t bits) {
  const DBytes d;
  const VBytes bytes = hn::BitCast(d, hn::Set(hn::FixedTag<std::uint64_t, 2>(), bits));
  const auto words = hn::BitCast(hn::FixedTag<std::uint32_t, 4>(), bytes);
  const VBytes first = hn::BitCast(d, hn::ShiftLeft < upper ? 2 : 4 > (words));
  const VBytes second = upper ? hn::BitCast(d, hn::ShiftRight<2>(words)) : bytes;
  return hn::And(hn::ConcatUpperLower(d, second, first), hn::Set(d, 0x30));
}

/// The 32 codes of block b of a token as floats.
template <class F>
HWY_INLINE void block_values(const std::byte* tile, std::size_t slot, std::size_t head_dim, std::size_t b,
                             VF* out) {
  using E = format::Plain<F>;
  const DBytes d;
  const VBytes both = hn::LoadU(d, reinterpret_cast<const std::uint8_t*>(E::codes(tile, b)) + slot * 16);
  VBytes low = hn::And(both, hn::Set(d, 15)), high = hn::ShiftRight<4>(both);
  if constexpr (E::high_words == 2) {
    const std::uint64_t word = E::high_bits(tile, head_dim, b)[slot];
    const std::uint64_t bits = word | std::uint64_t{E::high_bits(tile, head_dim, b, 1)[slot]} << 32;
    low = hn::Or(low, spread_high_pairs<false>(bits));
    high = hn::Or(high, spread_high_pairs<true>(bits));
  } else if constexpr (E::high_words == 1) {
    const std::uint32_t bits = E::high_bits(tile, head_dim, b)[slot];
    low = hn::Or(low, spread_fifth_bits<false>(bits));
    high = hn::Or(high, spread_fifth_bits<true>(bits));
  }
  if constexpr (has_shifts<F>) {
    alignas(16) static constexpr std::uint8_t bit[32] = {1,  1,  1,  1,  2,  2,  2,   2,   4,   4,  4,
                                                         4,  8,  8,  8,  8,  16, 16,  16,  16,  32, 32,
                                                         32, 32, 64, 64, 64, 64, 128, 128, 128, 128};
    const VBytes shifts = hn::Set(d, static_cast<std::uint8_t>(E::scales(tile, head_dim, b)[slot].bits >> 8));
    const auto shifted = [&](const std::uint8_t* bits)
                             HWY_ATTR { return hn::VecFromMask(d, hn::TestBit(shifts, hn::Load(d, bits))); };
    floats_of(shifted_codes<true>(d, low, shifted(bit)), out);
    floats_of(shifted_codes<true>(d, high, shifted(bit + 16)), out + parts);
  } else {
    floats_of(block_codes<F, true>(d, low), out);
    floats_of(block_codes<F, true>(d, high), out + parts);
  }
}

/// Blocks [b, b + blocks) of the outputs stay in registers while the tokens that all rows see pass by in
/// order.
template <std::size_t blocks, std::size_t rows, class F>
HWY_INLINE void add_blocks(const AttentionArgs& a, std::size_t row, const Visible& seen, std::size_t b) {
  using E = format::Plain<F>;
  constexpr std::size_t vectors = 2 * parts;  // of a block
  const DF d;
  alignas(64) float weight[blocks][rows][chunk_tokens];
  alignas(64) float out[rows][blocks * 32] = {};
  const std::size_t first = b * 32, count = HWY_MIN(blocks * 32, a.head_dim - first);
  for (std::size_t tile = first_tile(seen); tile < last_tile(seen); ++tile) {
    const std::byte* const values = a.tiles[tile] + a.value_offset;
    for (std::size_t k = 0; k < blocks; ++k) {
      for (std::size_t part = 0; part < parts; ++part) {
        const VF scale = load_scales<F>(E::scales(values, a.head_dim, b + k) + part * lanes);
        const std::size_t at = tile * 16 + part * lanes;
        for (std::size_t r = 0; r < rows; ++r)
          hn::Store(hn::Mul(load(a.p[row + r].data() + at), scale), d, weight[k][r] + at);
      }
    }
  }
  VF c[rows][blocks][vectors];
  MICA_UNROLL
  for (std::size_t r = 0; r < rows; ++r) {
    std::copy_n(a.out[row + r].data() + first, count, out[r]);
    MICA_UNROLL
    for (std::size_t k = 0; k < blocks; ++k) {
      MICA_UNROLL
      for (std::size_t v = 0; v < vectors; ++v) c[r][k][v] = hn::Load(d, out[r] + k * 32 + v * lanes);
    }
  }
  for (std::size_t tile = first_tile(seen); tile < last_tile(seen); ++tile) {
    const Slots s = slots_in(seen, tile);
    const std::size_t ahead = distance_ahead(a, tile, row == 0);
    const std::byte* const values = a.tiles[tile] + a.value_offset;
    for (std::size_t slot = s.first; slot < s.last; ++slot) {
      MICA_UNROLL
      for (std::size_t k = 0; k < blocks; ++k) {
        prefetch(E::codes(values, b + k) + slot * 16, ahead);
        VF number[vectors];
        block_values<F>(values, slot, a.head_dim, b + k, number);
        MICA_UNROLL
        for (std::size_t r = 0; r < rows; ++r) {
          const VF w = hn::Set(d, weight[k][r][tile * 16 + slot]);
          MICA_UNROLL
          for (std::size_t v = 0; v < vectors; ++v) c[r][k][v] = hn::MulAdd(w, number[v], c[r][k][v]);
        }
      }
    }
  }
  MICA_UNROLL
  for (std::size_t r = 0; r < rows; ++r) {
    MICA_UNROLL
    for (std::size_t k = 0; k < blocks; ++k) {
      MICA_UNROLL
      for (std::size_t v = 0; v < vectors; ++v) hn::Store(c[r][k][v], d, out[r] + k * 32 + v * lanes);
    }
    std::copy_n(out[r], count, a.out[row + r].data() + first);
  }
}

template <std::size_t rows, class F>
HWY_INLINE void add_block_run(const AttentionArgs& a, std::size_t row, const Visible& seen) {
  // As many sums as hide the latency of the multiply-add and as the registers hold beside a block.
  constexpr std::size_t sums = lanes == 4 ? 16 : 8, vectors = 2 * parts;
  if constexpr (rows * vectors > sums) {
    add_block_run<rows / 2, F>(a, row, seen);
    add_block_run<rows - rows / 2, F>(a, row + rows / 2, seen);
  } else {
    constexpr std::size_t together = sums / (rows * vectors);
    const std::size_t count = format::Plain<F>::blocks(a.head_dim);
    std::size_t b = 0;
    for (; b + together <= count; b += together) add_blocks<together, rows, F>(a, row, seen, b);
    if constexpr (together > 1) {
      for (; b < count; ++b) add_blocks<1, rows, F>(a, row, seen, b);
    }
  }
}

/// The sum of p * minimum over what a row sees. minima(tile, part): those of as many tokens as a vector has
/// lanes.
template <class Minima>
HWY_INLINE float sum_of_minima(const AttentionArgs& a, std::size_t row, Minima&& minima) {
  const DF d;
  const Visible& v = a.visible[row];
  VF c[parts];
  for (std::size_t part = 0; part < parts; ++part) c[part] = hn::Zero(d);
  for (std::size_t tile = first_tile(v); tile < last_tile(v); ++tile) {
    const Slots s = slots_in(v, tile);
    for (std::size_t part = 0; part < parts; ++part) {
      const VF p = load(a.p[row].data() + tile * 16 + part * lanes);
      const VF sum = hn::Add(c[part], hn::Mul(p, minima(tile, part)));
      c[part] = s.all() ? sum : hn::IfThenElse(mask_of(s, part), sum, c[part]);
    }
  }
  return tree(c);
}

/// After all tokens: minima, and back from the rotation.
template <class F>
HWY_INLINE void finish_block_values(const AttentionArgs& a, bool rotated) {
  using E = format::Plain<F>;
  for (std::size_t r = 0; r < a.q.rows(); ++r) {
    if (a.visible[r].empty()) continue;
    float* const out = a.out[r].data();
    if constexpr (E::has_minima) {
      for (std::size_t b = 0; b < E::blocks(a.head_dim); ++b) {
        const auto minima = [&](std::size_t tile, std::size_t part) HWY_ATTR {
          return load(E::minima(a.tiles[tile] + a.value_offset, a.head_dim, b) + part * lanes);
        };
        const float sum = sum_of_minima(a, r, minima);
        for (std::size_t i = 32 * b; i < HWY_MIN(32 * b + 32, a.head_dim); ++i) out[i] += sum;
      }
    }
    if (rotated) rotate_head(out, a.head_dim, out);
  }
}

}  // namespace MICA_PER_TARGET
HWY_AFTER_NAMESPACE();
#endif  // MICA_VECTORS
#endif
