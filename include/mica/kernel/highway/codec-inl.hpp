// SPDX-License-Identifier: Apache-2.0
//
// Per target: how the blocks of an integer format are unpacked in vectors. A codec has
//
//   unit_scales                       true when every integer scale is 1
//   unpack(block, codes)              block_size bytes code + code_offset, in order, where a chunk is one block
//   unpack(blocks, n, codes)          the same for n adjacent blocks, where a chunk is several
//   scales(rows, n, out)              the scales of n blocks of 16 rows, lanes are rows; rows[r] is the first block
//
// and, of formats that can be packed (tensor/detail/rows16.hpp),
//
//   period                            values after which the codes of a block repeat their pattern of bytes and bits
//   line<i>(p, s)                     code + code_offset of values i .. i + 3 of period s, lanes are rows; p is
//                                     word 0 of the block's codes, of the first row
//   packed_scales(p, n, out)          the scales of n blocks of 16 rows that lie packed at p
//
// The kernels work on chunks: 256 values of a row, or one block where blocks are longer. Codes are loaded in
// whole vectors soon after, so they should be stored in whole vectors: a load that spans two stores waits for
// both.

#if defined(MICA_KERNEL_HIGHWAY_CODEC_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_KERNEL_HIGHWAY_CODEC_INL_HPP
#undef MICA_KERNEL_HIGHWAY_CODEC_INL_HPP
#else
#define MICA_KERNEL_HIGHWAY_CODEC_INL_HPP
#endif

#include "mica/kernel/highway/dots-inl.hpp"

#if MICA_VECTORS
HWY_BEFORE_NAMESPACE();
namespace MICA_PER_TARGET {

/// Rows that are computed together.
inline constexpr std::size_t panel_rows = 16;

template <class F>
struct Codec {
  static_assert(sizeof(F) == 0,
                "mica::kernel::Highway: a format with vector_codec = true needs a Codec<F>; name its file "
                "in MICA_USER_CODECS_INL before including mica/kernel/highway/dispatch.hpp");
};

/// F on a machine with dots of four bytes, where its instruction set does not promise them
/// (machine_options.hpp).
template <IntegerFormat F>
struct Dotted : F {};
template <IntegerFormat F>
struct Codec<Dotted<F>> : Codec<F> {};

/// Whether products with F use dots of four bytes.
template <class F>
inline constexpr bool quads = target_quads;
template <class F>
inline constexpr bool quads<Dotted<F>> = true;

/// The sizes of a chunk.
template <IntegerFormat F>
struct Chunk {
  static_assert(F::block_size % 32 == 0 && (F::group == 16 || F::group == 32));
  static constexpr std::size_t values =
      F::block_size >= 256 ? F::block_size : 256 / F::block_size * F::block_size;
  static_assert(values % 64 == 0, "a chunk is whole vectors");
  static constexpr std::size_t blocks = values / F::block_size;
  static constexpr std::size_t groups = values / F::group;
};

/// What 16 rows multiply their integer sums by, in one chunk.
template <IntegerFormat F>
struct ChunkScales {
  static_assert(!Codec<F>::unit_scales || F::group == 32, "groups of 16 are there for their scales");
  alignas(64) float scale[Codec<F>::unit_scales ? 1 : Chunk<F>::groups][panel_rows];
  alignas(64) float min[F::has_mins ? Chunk<F>::groups : 1][panel_rows];
  alignas(64) float d[Chunk<F>::blocks][panel_rows];
  alignas(64) float dmin[F::has_mins ? Chunk<F>::blocks : 1][panel_rows];
};

template <IntegerFormat F>
struct ChunkScales<Dotted<F>> : ChunkScales<F> {};

/// Block b of 16 rows; rows past the end repeat the last one.
template <WeightFormat F>
HWY_INLINE void rows_from(const MatmulArgs<F>& a, std::size_t row, std::size_t b,
                          const typename F::Block* (&rows)[panel_rows]) {
  for (std::size_t r = 0; r < panel_rows; ++r) rows[r] = a.w.row(HWY_MIN(row + r, a.last - 1)) + b;
}

/// The codes of n blocks that follow each other.
template <IntegerFormat F>
HWY_INLINE void unpack_chunk(const typename F::Block* blocks, std::size_t n,
                             std::uint8_t* HWY_RESTRICT codes) {
  if constexpr (Chunk<F>::blocks == 1) {
    Codec<F>::unpack(*blocks, codes);
  } else {
    Codec<F>::unpack(blocks, n, codes);
  }
}

/// Stores the 32 nibbles of every block, low ones first, in whole vectors. finish(d, v, b, i) turns nibbles
/// into codes: v holds those of block b from value i on, and of the next block where vectors have 64 bytes.
template <class Block, class Finish>
HWY_INLINE void unpack_nibbles(const Block* blocks, std::size_t n, std::uint8_t* HWY_RESTRICT codes,
                               const Finish& finish) {
  const hn::CappedTag<std::uint8_t, 32> d;
  std::size_t b = 0;
  if constexpr (hn::MaxLanes(DU8()) == 64) {
    MICA_UNROLL
    for (; b + 1 < n; b += 2) {
      const auto bytes =
          hn::Combine(DU8(), hn::LoadDup128(d, blocks[b + 1].nibbles), hn::LoadDup128(d, blocks[b].nibbles));
      const auto low = hn::And(bytes, hn::Set(DU8(), 15));
      hn::StoreU(finish(DU8(), hn::OddEvenBlocks(hn::ShiftRight<4>(bytes), low), b, 0), DU8(),
                 codes + 32 * b);
    }
  }
  for (; b < n; ++b) {
    const auto bytes = hn::LoadDup128(d, blocks[b].nibbles);
    const auto low = hn::And(bytes, hn::Set(d, 15)), high = hn::ShiftRight<4>(bytes);
    if constexpr (hn::MaxLanes(d) == 32) {
      hn::StoreU(finish(d, hn::OddEvenBlocks(high, low), b, 0), d, codes + 32 * b);
    } else {
      hn::StoreU(finish(d, low, b, 0), d, codes + 32 * b);
      hn::StoreU(finish(d, high, b, 16), d, codes + 32 * b + 16);
    }
  }
}

/// Two runs of 32 codes that follow each other, a vector of each; j is where in its run the first one begins.
template <class D, class V>
HWY_INLINE void store_columns(D d, V first, V second, std::uint8_t* p) {
  if constexpr (hn::MaxLanes(D()) == 32) {
    store_pair(d, first, second, p);
  } else {
    hn::StoreU(first, d, p);
    hn::StoreU(second, d, p + 32);
  }
}

/// 256 codes of two bits: value 32 c + j of half h lies in byte 32 h + j, bits 2c and 2c + 1. finish(d, v,
/// at, j) gets those from j on of run `at`, an integral constant, and makes codes of them.
template <class Finish>
HWY_INLINE void unpack_pairs(const std::uint8_t* pairs, std::uint8_t* HWY_RESTRICT codes,
                             const Finish& finish) {
  const hn::CappedTag<std::uint8_t, 32> d;
  const auto pair = hn::Set(d, 3);
  const auto unpack_half = [&](auto half) HWY_ATTR {
    constexpr int h = decltype(half)::value;
    for (std::size_t j = 0; j < 32; j += hn::MaxLanes(d)) {
      const auto bytes = hn::LoadU(d, pairs + 32 * h + j);
      const auto c0 = hn::And(bytes, pair), c1 = hn::And(hn::ShiftRight<2>(bytes), pair),
                 c2 = hn::And(hn::ShiftRight<4>(bytes), pair), c3 = hn::ShiftRight<6>(bytes);
      const auto run = [&](auto c, auto v) HWY_ATTR {
        return finish(d, v, std::integral_constant<int, 4 * h + decltype(c)::value>(), j);
      };
      std::uint8_t* const out = codes + 128 * h + j;
      store_columns(d, run(std::integral_constant<int, 0>(), c0), run(std::integral_constant<int, 1>(), c1),
                    out);
      store_columns(d, run(std::integral_constant<int, 2>(), c2), run(std::integral_constant<int, 3>(), c3),
                    out + 64);
    }
  };
  unpack_half(std::integral_constant<int, 0>());
  unpack_half(std::integral_constant<int, 1>());
}

/// Sixteen half floats become floats.
HWY_INLINE void widen16(const Half* halves, float* out) {
  for (std::size_t i = 0; i < panel_rows; i += lanes) hn::StoreU(load(halves + i), DF(), out + i);
}

/// load_words of a block of each of 16 rows, from its byte `offset` on.
template <class Block>
HWY_INLINE void load_words(const Block* const* rows, std::size_t offset, std::size_t row, VI (&word)[4]) {
  const auto at = [=](std::size_t r) {
    return reinterpret_cast<const std::int32_t*>(reinterpret_cast<const std::byte*>(rows[r]) + offset);
  };
  load_words(at, row, word);
}

/// Half floats in the lower halves of lanes become floats.
HWY_INLINE VF widen_low(VI v) {
  const hn::Rebind<std::uint16_t, DF> d16;
  const hn::Rebind<hwy::float16_t, DF> dh;
  return hn::PromoteTo(DF(), hn::BitCast(dh, hn::TruncateTo(d16, hn::BitCast(DU(), v))));
}

/// The field d of n blocks of 16 rows.
template <class Block, std::size_t n_max>
HWY_INLINE void gather_d(const Block* const* rows, std::size_t n, float (&out)[n_max][panel_rows]) {
  Half halves[n_max][panel_rows];
  for (std::size_t r = 0; r < panel_rows; ++r) {
    MICA_UNROLL
    for (std::size_t b = 0; b < n; ++b) halves[b][r] = rows[r][b].d;
  }
  MICA_UNROLL
  for (std::size_t b = 0; b < n; ++b) widen16(halves[b], out[b]);
}

/// Four bytes of n blocks of 16 rows, beginning at at(block).
template <class Block, class At, std::size_t n_max>
HWY_INLINE void gather_words(const Block* const* rows, std::size_t n, const At& at,
                             std::int32_t (&out)[n_max][panel_rows]) {
  for (std::size_t r = 0; r < panel_rows; ++r) {
    MICA_UNROLL
    for (std::size_t b = 0; b < n; ++b) hwy::CopyBytes<4>(at(rows[r][b]), &out[b][r]);
  }
}

template <IntegerFormat F>
HWY_INLINE void store_d_and_m(VI word, std::size_t b, std::size_t r, ChunkScales<F>& out) {
  hn::Store(widen_low(word), DF(), out.d[b] + r);
  hn::Store(hn::Neg(widen_low(hn::ShiftRight<16>(word))), DF(), out.dmin[b] + r);
  hn::Store(hn::Set(DF(), 1.0f), DF(), out.min[b] + r);
}

/// The fields d and m of n blocks of 16 rows: the offset m is a min of 1 with dmin = -m.
template <IntegerFormat F>
HWY_INLINE void gather_d_and_m(const typename F::Block* const* rows, std::size_t n, ChunkScales<F>& out) {
  alignas(64) std::int32_t words[Chunk<F>::blocks][panel_rows];
  gather_words(
      rows, n, [](const auto& block) { return &block.d; }, words);
  MICA_UNROLL
  for (std::size_t b = 0; b < n; ++b) {
    for (std::size_t r = 0; r < panel_rows; r += lanes) {
      store_d_and_m<F>(hn::Load(DI(), words[b] + r), b, r, out);
    }
  }
}

// ---- packed rows

/// Word w of as many rows as a vector has lanes; p is word 0 of the first of them.
HWY_INLINE VU8 packed_word(const std::uint8_t* p, std::size_t w) {
  return hn::LoadU(DU8(), p + w * 4 * panel_rows);
}
HWY_INLINE VI packed_scale_word(const std::uint8_t* p, std::size_t w, std::size_t r) {
  return hn::LoadU(DI(), reinterpret_cast<const std::int32_t*>(p + 4 * (w * panel_rows + r)));
}

template <bool high>
HWY_INLINE VU8 nibble(VU8 v) {
  if constexpr (high) return hn::ShiftRight<4>(v);
  return hn::And(v, hn::Set(DU8(), 15));
}

/// Every byte's bits from `from` on, moved to `to` on; what `mask` (of a byte) leaves of them.
template <int from, int to>
HWY_INLINE VU8 move_bits(VU8 v, std::uint8_t mask) {
  const VU words = hn::BitCast(DU(), v);
  if constexpr (from < to) v = hn::BitCast(DU8(), hn::ShiftLeft<to - from>(words));
  if constexpr (from > to) v = hn::BitCast(DU8(), hn::ShiftRight<from - to>(words));
  return hn::And(v, hn::Set(DU8(), mask));
}

/// The field d of n blocks, which is all that they have besides codes.
template <std::size_t n_max>
HWY_INLINE void packed_d(const std::uint8_t* p, std::size_t n, float (&out)[n_max][panel_rows]) {
  MICA_UNROLL
  for (std::size_t b = 0; b < n; ++b) widen16(reinterpret_cast<const Half*>(p) + b * panel_rows, out[b]);
}

/// The fields d and m of n blocks, as gather_d_and_m has them.
template <IntegerFormat F>
HWY_INLINE void packed_d_and_m(const std::uint8_t* p, std::size_t n, ChunkScales<F>& out) {
  MICA_UNROLL
  for (std::size_t b = 0; b < n; ++b) {
    for (std::size_t r = 0; r < panel_rows; r += lanes)
      store_d_and_m<F>(packed_scale_word(p, b, r), b, r, out);
  }
}

/// What `mask` leaves of every lane, shifted down.
template <int shift>
HWY_INLINE VI bits(VI v, std::int32_t mask) {
  return hn::And(hn::BitCast(DI(), hn::ShiftRight<shift>(hn::BitCast(DU(), v))), hn::Set(DI(), mask));
}

/// The same by a shift that the compiler knows once a loop is unrolled.
HWY_INLINE VI bits(VI v, int shift, std::int32_t mask) {
  return hn::And(hn::BitCast(DI(), hn::ShiftRightSame(hn::BitCast(DU(), v), shift)), hn::Set(DI(), mask));
}

// ---- what codecs share

/// Blocks of groups that have scales of their own.
template <IntegerFormat F>
struct GroupScales {
  using Block = typename F::Block;
  static constexpr bool unit_scales = false;
};

/// Blocks with one scale, the half float d, and nothing else beside codes.
template <IntegerFormat F>
struct OneScale {
  using Block = typename F::Block;
  static constexpr bool unit_scales = true;

  static HWY_INLINE void scales(const Block* const* rows, std::size_t n, ChunkScales<F>& out) {
    gather_d(rows, Chunk<F>::blocks == 1 ? 1 : n, out.d);  // a constant where it can be one
  }
  static HWY_INLINE void packed_scales(const std::uint8_t* p, std::size_t n, ChunkScales<F>& out) {
    packed_d(p, n, out.d);
  }
};

/// Blocks with one scale and one offset, the half floats d and m.
template <IntegerFormat F>
struct ScaleAndOffset {
  using Block = typename F::Block;
  static constexpr bool unit_scales = true;

  static HWY_INLINE void scales(const Block* const* rows, std::size_t n, ChunkScales<F>& out) {
    gather_d_and_m(rows, n, out);
  }
  static HWY_INLINE void packed_scales(const std::uint8_t* p, std::size_t n, ChunkScales<F>& out) {
    packed_d_and_m(p, n, out);
  }
};

/// 256 codes of two bits, and no others.
struct BitPairs {
  template <class Block>
  static HWY_INLINE void unpack(const Block& block, std::uint8_t* HWY_RESTRICT codes) {
    unpack_pairs(block.pairs, codes, [](auto, auto v, auto, std::size_t) HWY_ATTR { return v; });
  }

  static constexpr std::size_t period = 128;
  template <std::size_t i>
  static HWY_INLINE VU8 line(const std::uint8_t* p, std::size_t s) {
    return move_bits<2 * (i / 32), 0>(packed_word(p, 8 * s + i % 32 / 4), 3);
  }
};

}  // namespace MICA_PER_TARGET
HWY_AFTER_NAMESPACE();
#endif  // MICA_VECTORS
#endif
