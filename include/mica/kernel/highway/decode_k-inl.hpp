// SPDX-License-Identifier: Apache-2.0
//
// Per target: the formats of 256 values in groups with scales of their own (format/ has the layouts).

#if defined(MICA_KERNEL_HIGHWAY_DECODE_K_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_KERNEL_HIGHWAY_DECODE_K_INL_HPP
#undef MICA_KERNEL_HIGHWAY_DECODE_K_INL_HPP
#else
#define MICA_KERNEL_HIGHWAY_DECODE_K_INL_HPP
#endif

#include "mica/kernel/highway/codec-inl.hpp"

#if MICA_VECTORS
HWY_BEFORE_NAMESPACE();
namespace MICA_PER_TARGET {

template <>
struct Codec<format::Q2_K> : GroupScales<format::Q2_K>, BitPairs {
  /// Sixteen bytes of a row are four words, that is four groups each. Lanes are rows.
  static HWY_INLINE void scales(const Block* const* rows, std::size_t, ChunkScales<format::Q2_K>& out) {
    for (std::size_t r = 0; r < panel_rows; r += lanes) {
      VI word[4];
      load_words(rows, offsetof(Block, scales), r, word);
      MICA_UNROLL
      for (std::size_t i = 0; i < 4; ++i) spread(word[i], i, r, out);
    }
    alignas(64) std::int32_t words[1][panel_rows];
    gather_words(
        rows, 1, [](const Block& block) { return &block.d; }, words);
    for (std::size_t r = 0; r < panel_rows; r += lanes) {
      store_d(hn::Load(DI(), words[0] + r), r, out);
    }
  }

  static HWY_INLINE void packed_scales(const std::uint8_t* p, std::size_t, ChunkScales<format::Q2_K>& out) {
    for (std::size_t r = 0; r < panel_rows; r += lanes) {
      MICA_UNROLL
      for (std::size_t i = 0; i < 4; ++i) spread(packed_scale_word(p, i, r), i, r, out);
      store_d(packed_scale_word(p, 4, r), r, out);
    }
  }

 private:
  /// Scales and mins of groups 4 i .. 4 i + 3.
  static HWY_INLINE void spread(VI word, std::size_t i, std::size_t r, ChunkScales<format::Q2_K>& out) {
    store_bits<0, 15>(word, out.scale[4 * i] + r);
    store_bits<4, 15>(word, out.min[4 * i] + r);
    store_bits<8, 15>(word, out.scale[4 * i + 1] + r);
    store_bits<12, 15>(word, out.min[4 * i + 1] + r);
    store_bits<16, 15>(word, out.scale[4 * i + 2] + r);
    store_bits<20, 15>(word, out.min[4 * i + 2] + r);
    store_bits<24, 15>(word, out.scale[4 * i + 3] + r);
    store_bits<28, 15>(word, out.min[4 * i + 3] + r);
  }
  static HWY_INLINE void store_d(VI word, std::size_t r, ChunkScales<format::Q2_K>& out) {
    hn::Store(widen_low(word), DF(), out.d[0] + r);
    hn::Store(widen_low(hn::ShiftRight<16>(word)), DF(), out.dmin[0] + r);
  }
  template <int shift, std::int32_t mask>
  static HWY_INLINE void store_bits(VI v, float* out) {
    hn::Store(hn::ConvertTo(DF(), bits<shift>(v, mask)), DF(), out);
  }
};

template <>
struct Codec<format::Q3_K> : GroupScales<format::Q3_K> {
  static HWY_INLINE void unpack(const Block& block, std::uint8_t* HWY_RESTRICT codes) {
    unpack_pairs(block.pairs, codes, [&block](auto d, auto v, auto at, std::size_t j) HWY_ATTR {
      constexpr int bit = decltype(at)::value;  // 4 h + c
      const auto high = hn::LoadU(d, block.high + j);
      const auto mask = hn::Set(d, 4);
      if constexpr (bit < 2) {
        return hn::Or(v, hn::And(hn::ShiftLeft<2 - bit>(high), mask));
      } else {
        return hn::Or(v, hn::And(hn::ShiftRight<bit - 2>(high), mask));
      }
    });
  }

  /// Sixteen bytes of a row are four words: two bytes that are none of ours, 12 of scales, and d. Lanes are
  /// rows.
  static HWY_INLINE void scales(const Block* const* rows, std::size_t, ChunkScales<format::Q3_K>& out) {
    for (std::size_t r = 0; r < panel_rows; r += lanes) {
      VI word[4];
      load_words(rows, offsetof(Block, scales) - 2, r, word);
      hn::Store(widen_low(hn::ShiftRight<16>(word[3])), DF(), out.d[0] + r);
      const VI low[2] = {neighbours(word[0], word[1]), neighbours(word[1], word[2])};
      spread_all(low, neighbours(word[2], word[3]), r, out);
    }
  }

  static constexpr std::size_t period = 128;
  template <std::size_t i>
  static HWY_INLINE VU8 line(const std::uint8_t* p, std::size_t s) {
    const VU high =
        hn::ShiftRightSame(hn::BitCast(DU(), packed_word(p, i % 32 / 4)), static_cast<int>(4 * s));
    return hn::Or(move_bits<2 * (i / 32), 0>(packed_word(p, 8 + 8 * s + i % 32 / 4), 3),
                  move_bits<i / 32, 2>(hn::BitCast(DU8(), high), 4));
  }
  static HWY_INLINE void packed_scales(const std::uint8_t* p, std::size_t, ChunkScales<format::Q3_K>& out) {
    for (std::size_t r = 0; r < panel_rows; r += lanes) {
      const VI low[2] = {packed_scale_word(p, 0, r), packed_scale_word(p, 1, r)};
      spread_all(low, packed_scale_word(p, 2, r), r, out);
    }
    packed_d(p + 12 * panel_rows, 1, out.d);
  }

 private:
  /// The upper half of a, then the lower half of b.
  static HWY_INLINE VI neighbours(VI a, VI b) {
    return hn::Or(hn::BitCast(DI(), hn::ShiftRight<16>(hn::BitCast(DU(), a))), hn::ShiftLeft<16>(b));
  }
  static HWY_INLINE void spread_all(const VI (&low)[2], VI high, std::size_t r,
                                    ChunkScales<format::Q3_K>& out) {
    spread<0>(low, high, r, out);
    spread<1>(low, high, r, out);
    spread<2>(low, high, r, out);
    spread<3>(low, high, r, out);
  }
  /// Scales g, g + 4, g + 8 and g + 12.
  template <int g>
  static HWY_INLINE void spread(const VI (&low)[2], VI high, std::size_t r, ChunkScales<format::Q3_K>& out) {
    store(bits<8 * g>(low[0], 15), bits<8 * g>(high, 3), out.scale[g] + r);
    store(bits<8 * g>(low[1], 15), bits<8 * g + 2>(high, 3), out.scale[g + 4] + r);
    store(bits<8 * g + 4>(low[0], 15), bits<8 * g + 4>(high, 3), out.scale[g + 8] + r);
    store(bits<8 * g + 4>(low[1], 15), bits<8 * g + 6>(high, 3), out.scale[g + 12] + r);
  }
  static HWY_INLINE void store(VI low, VI high, float* out) {
    const VI scale = hn::Sub(hn::Or(low, hn::ShiftLeft<4>(high)), hn::Set(DI(), 32));
    hn::Store(hn::ConvertTo(DF(), scale), DF(), out);
  }
};

/// Blocks that begin with four words: d and dmin, and three of scale bytes. Lanes are rows.
template <IntegerFormat F>
struct SixBitScales : GroupScales<F> {
  static HWY_INLINE void scales(const typename F::Block* const* rows, std::size_t, ChunkScales<F>& out) {
    for (std::size_t r = 0; r < panel_rows; r += lanes) {
      VI word[4];
      load_words(rows, 0, r, word);
      spread_all(word, r, out);
    }
  }
  static HWY_INLINE void packed_scales(const std::uint8_t* p, std::size_t, ChunkScales<F>& out) {
    for (std::size_t r = 0; r < panel_rows; r += lanes) {
      const VI word[4] = {packed_scale_word(p, 0, r), packed_scale_word(p, 1, r), packed_scale_word(p, 2, r),
                          packed_scale_word(p, 3, r)};
      spread_all(word, r, out);
    }
  }

 private:
  static HWY_INLINE void spread_all(const VI (&word)[4], std::size_t r, ChunkScales<F>& out) {
    hn::Store(widen_low(word[0]), DF(), out.d[0] + r);
    hn::Store(widen_low(hn::ShiftRight<16>(word[0])), DF(), out.dmin[0] + r);
    spread<0>(word, r, out);
    spread<1>(word, r, out);
    spread<2>(word, r, out);
    spread<3>(word, r, out);
  }
  /// Scales and mins g and g + 4.
  template <int g>
  static HWY_INLINE void spread(const VI (&word)[4], std::size_t r, ChunkScales<F>& out) {
    const DF d;
    const VI low = word[1], middle = word[2], high = word[3];
    const VI upper_scale = hn::ShiftLeft<4>(bits<8 * g + 6>(low, 3));
    const VI upper_min = hn::ShiftLeft<4>(bits<8 * g + 6>(middle, 3));
    hn::Store(hn::ConvertTo(d, bits<8 * g>(low, 63)), d, out.scale[g] + r);
    hn::Store(hn::ConvertTo(d, bits<8 * g>(middle, 63)), d, out.min[g] + r);
    hn::Store(hn::ConvertTo(d, hn::Or(bits<8 * g>(high, 15), upper_scale)), d, out.scale[g + 4] + r);
    hn::Store(hn::ConvertTo(d, hn::Or(bits<8 * g + 4>(high, 15), upper_min)), d, out.min[g + 4] + r);
  }
};

template <>
struct Codec<format::Q4_K> : SixBitScales<format::Q4_K> {
  static HWY_INLINE void unpack(const Block& block, std::uint8_t* HWY_RESTRICT codes) {
    const hn::CappedTag<std::uint8_t, 32> d;
    const auto nibble = hn::Set(d, 15);
    for (std::size_t p = 0; p < 4; ++p) {
      for (std::size_t j = 0; j < 32; j += hn::MaxLanes(d)) {
        const auto bytes = hn::LoadU(d, block.nibbles + 32 * p + j);
        store_columns(d, hn::And(bytes, nibble), hn::ShiftRight<4>(bytes), codes + 64 * p + j);
      }
    }
  }

  static constexpr std::size_t period = 64;
  template <std::size_t i>
  static HWY_INLINE VU8 line(const std::uint8_t* p, std::size_t s) {
    return nibble<(i >= 32)>(packed_word(p, 8 * s + i % 32 / 4));
  }
};

template <>
struct Codec<format::Q5_K> : SixBitScales<format::Q5_K> {
  static HWY_INLINE void unpack(const Block& block, std::uint8_t* HWY_RESTRICT codes) {
    const hn::CappedTag<std::uint8_t, 32> d;
    const auto nibble = hn::Set(d, 15), fifth = hn::Set(d, 16);
    for (std::size_t j = 0; j < 32; j += hn::MaxLanes(d)) {
      auto high = hn::LoadU(d, block.high + j);
      for (std::size_t p = 0; p < 4; ++p) {
        const auto bytes = hn::LoadU(d, block.nibbles + 32 * p + j);
        const auto even = hn::Or(hn::And(bytes, nibble), hn::And(hn::ShiftLeft<4>(high), fifth));
        const auto odd = hn::Or(hn::ShiftRight<4>(bytes), hn::And(hn::ShiftLeft<3>(high), fifth));
        store_columns(d, even, odd, codes + 64 * p + j);
        high = hn::ShiftRight<2>(high);
      }
    }
  }

  static constexpr std::size_t period = 64;
  template <std::size_t i>
  static HWY_INLINE VU8 line(const std::uint8_t* p, std::size_t s) {
    const VU high =
        hn::ShiftRightSame(hn::BitCast(DU(), packed_word(p, i % 32 / 4)), static_cast<int>(2 * s));
    return hn::Or(nibble<(i >= 32)>(packed_word(p, 8 + 8 * s + i % 32 / 4)),
                  move_bits<(i >= 32 ? 1 : 0), 4>(hn::BitCast(DU8(), high), 16));
  }
};

template <>
struct Codec<format::Q6_K> : GroupScales<format::Q6_K> {
  static HWY_INLINE void unpack(const Block& block, std::uint8_t* HWY_RESTRICT codes) {
    const hn::CappedTag<std::uint8_t, 32> d;
    for (std::size_t half = 0; half < 2; ++half) {
      for (std::size_t j = 0; j < 32; j += hn::MaxLanes(d)) {
        const auto first = hn::LoadU(d, block.low + 64 * half + j);
        const auto second = hn::LoadU(d, block.low + 64 * half + 32 + j);
        const auto high = hn::LoadU(d, block.high + 32 * half + j);
        const auto nibble = hn::Set(d, 15), pair = hn::Set(d, 0x30);
        std::uint8_t* const out = codes + 128 * half + j;
        const auto c0 = hn::Or(hn::And(first, nibble), hn::And(hn::ShiftLeft<4>(high), pair));
        const auto c1 = hn::Or(hn::And(second, nibble), hn::And(hn::ShiftLeft<2>(high), pair));
        const auto c2 = hn::Or(hn::ShiftRight<4>(first), hn::And(high, pair));
        const auto c3 = hn::Or(hn::ShiftRight<4>(second), hn::And(hn::ShiftRight<2>(high), pair));
        store_columns(d, c0, c1, out);
        store_columns(d, c2, c3, out + 64);
      }
    }
  }

  /// Sixteen bytes of a row are four words, that is four groups each. Lanes are rows.
  static HWY_INLINE void scales(const Block* const* rows, std::size_t, ChunkScales<format::Q6_K>& out) {
    for (std::size_t r = 0; r < panel_rows; r += lanes) {
      VI word[4];
      load_words(rows, offsetof(Block, scales), r, word);
      MICA_UNROLL
      for (std::size_t i = 0; i < 4; ++i) spread(word[i], i, r, out);
    }
    gather_d(rows, 1, out.d);
  }

  static constexpr std::size_t period = 128;
  template <std::size_t i>
  static HWY_INLINE VU8 line(const std::uint8_t* p, std::size_t s) {
    return hn::Or(nibble<(i >= 64)>(packed_word(p, 16 * s + i % 64 / 4)),
                  move_bits<2 * (i / 32), 4>(packed_word(p, 32 + 8 * s + i % 32 / 4), 0x30));
  }
  static HWY_INLINE void packed_scales(const std::uint8_t* p, std::size_t, ChunkScales<format::Q6_K>& out) {
    for (std::size_t r = 0; r < panel_rows; r += lanes) {
      MICA_UNROLL
      for (std::size_t i = 0; i < 4; ++i) spread(packed_scale_word(p, i, r), i, r, out);
    }
    packed_d(p + 16 * panel_rows, 1, out.d);
  }

 private:
  /// The scales of groups 4 i .. 4 i + 3.
  static HWY_INLINE void spread(VI word, std::size_t i, std::size_t r, ChunkScales<format::Q6_K>& out) {
    const DF d;
    hn::Store(top_byte(hn::ShiftLeft<24>(word)), d, out.scale[4 * i] + r);
    hn::Store(top_byte(hn::ShiftLeft<16>(word)), d, out.scale[4 * i + 1] + r);
    hn::Store(top_byte(hn::ShiftLeft<8>(word)), d, out.scale[4 * i + 2] + r);
    hn::Store(top_byte(word), d, out.scale[4 * i + 3] + r);
  }
  static HWY_INLINE VF top_byte(VI v) { return hn::ConvertTo(DF(), hn::ShiftRight<24>(v)); }
};

}  // namespace MICA_PER_TARGET
HWY_AFTER_NAMESPACE();
#endif  // MICA_VECTORS
#endif
