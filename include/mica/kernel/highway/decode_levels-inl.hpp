// SPDX-License-Identifier: Apache-2.0
//
// Per target: the formats of four bits that stand for sixteen uneven levels (format/ has the layouts).

#if defined(MICA_KERNEL_HIGHWAY_DECODE_LEVELS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_KERNEL_HIGHWAY_DECODE_LEVELS_INL_HPP
#undef MICA_KERNEL_HIGHWAY_DECODE_LEVELS_INL_HPP
#else
#define MICA_KERNEL_HIGHWAY_DECODE_LEVELS_INL_HPP
#endif

#include "mica/kernel/highway/codec-inl.hpp"

#if MICA_VECTORS
HWY_BEFORE_NAMESPACE();
namespace MICA_PER_TARGET {

/// Doubled four-bit floats, plus 12.
alignas(16) inline constexpr std::uint8_t offset_fp4[16] = {12, 13, 14, 15, 16, 18, 20, 24,
                                                            12, 11, 10, 9,  8,  6,  4,  0};

/// The levels that nibbles stand for, plus code_offset.
template <class D>
HWY_INLINE hn::Vec<D> levels_of(D d, hn::Vec<D> indices) {
  const hn::RebindToSigned<D> ds;
  const auto levels = hn::BitCast(d, hn::LoadDup128(ds, format::IQ4_NL::levels));
  const auto offset = hn::Set(d, static_cast<std::uint8_t>(format::IQ4_NL::code_offset));
  return hn::TableLookupBytes(hn::Add(levels, offset), indices);
}
template <class Block>
HWY_INLINE void unpack_levels(const Block* blocks, std::size_t n, std::uint8_t* HWY_RESTRICT codes) {
  unpack_nibbles(blocks, n, codes,
                 [](auto d, auto v, std::size_t, std::size_t) HWY_ATTR { return levels_of(d, v); });
}

template <>
struct Codec<format::IQ4_NL> : OneScale<format::IQ4_NL> {
  static HWY_INLINE void unpack(const Block* blocks, std::size_t n, std::uint8_t* HWY_RESTRICT codes) {
    unpack_levels(blocks, n, codes);
  }

  static constexpr std::size_t period = 32;
  template <std::size_t i>
  static HWY_INLINE VU8 line(const std::uint8_t* p, std::size_t) {
    return levels_of(DU8(), nibble<(i >= 16)>(packed_word(p, i % 16 / 4)));
  }
};

template <>
struct Codec<format::IQ4_XS> : GroupScales<format::IQ4_XS> {
  static HWY_INLINE void unpack(const Block& block, std::uint8_t* HWY_RESTRICT codes) {
    unpack_levels(reinterpret_cast<const Group*>(block.nibbles), 8, codes);
  }

  /// The first eight bytes of a block are two words: d and the high bits of scales, and their low bits. Lanes
  /// are rows.
  static HWY_INLINE void scales(const Block* const* rows, std::size_t, ChunkScales<format::IQ4_XS>& out) {
    for (std::size_t r = 0; r < panel_rows; r += lanes) {
      VI word[4];
      load_words(rows, 0, r, word);
      spread(word[0], word[1], r, out);
    }
  }

  static constexpr std::size_t period = 32;
  template <std::size_t i>
  static HWY_INLINE VU8 line(const std::uint8_t* p, std::size_t s) {
    return levels_of(DU8(), nibble<(i >= 16)>(packed_word(p, 4 * s + i % 16 / 4)));
  }
  static HWY_INLINE void packed_scales(const std::uint8_t* p, std::size_t, ChunkScales<format::IQ4_XS>& out) {
    for (std::size_t r = 0; r < panel_rows; r += lanes)
      spread(packed_scale_word(p, 0, r), packed_scale_word(p, 1, r), r, out);
  }

 private:
  static HWY_INLINE void spread(VI d_and_high, VI low, std::size_t r, ChunkScales<format::IQ4_XS>& out) {
    hn::Store(widen_low(d_and_high), DF(), out.d[0] + r);
    MICA_UNROLL
    for (int g = 0; g < 8; ++g) {
      const VI high = hn::ShiftLeft<4>(bits(d_and_high, 16 + 2 * g, 3));
      const VI scale = hn::Sub(hn::Or(bits(low, 4 * g, 15), high), hn::Set(DI(), 32));
      hn::Store(hn::ConvertTo(DF(), scale), DF(), out.scale[g] + r);
    }
  }
  struct Group {
    std::uint8_t nibbles[16];
  };
};

template <>
struct Codec<format::MXFP4> {
  using Block = format::MXFP4::Block;
  static constexpr bool unit_scales = true;

  static HWY_INLINE void unpack(const Block* blocks, std::size_t n, std::uint8_t* HWY_RESTRICT codes) {
    unpack_nibbles(blocks, n, codes, [](auto d, auto v, std::size_t, std::size_t) HWY_ATTR {
      return hn::TableLookupBytes(hn::LoadDup128(d, offset_fp4), v);
    });
  }
  static HWY_INLINE void scales(const Block* const* rows, std::size_t n, ChunkScales<format::MXFP4>& out) {
    alignas(64) std::int32_t words[Chunk<format::MXFP4>::blocks][panel_rows];
    gather_words(
        rows, n, [](const Block& block) { return &block.exponent; }, words);
    MICA_UNROLL
    for (std::size_t b = 0; b < n; ++b) {
      for (std::size_t r = 0; r < panel_rows; r += lanes) {
        hn::Store(half_power(bits<0>(hn::Load(DI(), words[b] + r), 255)), DF(), out.d[b] + r);
      }
    }
  }

  static constexpr std::size_t period = 32;
  template <std::size_t i>
  static HWY_INLINE VU8 line(const std::uint8_t* p, std::size_t) {
    return hn::TableLookupBytes(hn::LoadDup128(DU8(), offset_fp4),
                                nibble<(i >= 16)>(packed_word(p, i % 16 / 4)));
  }
  static HWY_INLINE void packed_scales(const std::uint8_t* p, std::size_t n,
                                       ChunkScales<format::MXFP4>& out) {
    MICA_UNROLL
    for (std::size_t b = 0; b < n; ++b) {
      for (std::size_t r = 0; r < panel_rows; r += lanes) {
        const auto exponents = hn::LoadU(hn::Rebind<std::uint8_t, DI>(), p + b * panel_rows + r);
        hn::Store(half_power(hn::PromoteTo(DI(), exponents)), DF(), out.d[b] + r);
      }
    }
  }

 private:
  /// 2^(exponent - 128) from its bits; the two smallest are subnormal.
  static HWY_INLINE VF half_power(VI exponent) {
    const VI normal = hn::ShiftLeft<23>(hn::Sub(exponent, hn::Set(DI(), 1)));
    const VI subnormal = hn::ShiftLeft<21>(hn::Add(exponent, hn::Set(DI(), 1)));
    return hn::BitCast(DF(), hn::IfThenElse(hn::Lt(exponent, hn::Set(DI(), 2)), subnormal, normal));
  }
};

template <>
struct Codec<format::NVFP4> : GroupScales<format::NVFP4> {
  static HWY_INLINE void unpack(const Block* blocks, std::size_t n, std::uint8_t* HWY_RESTRICT codes) {
    const hn::CappedTag<std::uint8_t, 32> d;
    const hn::Repartition<std::uint64_t, decltype(d)> d64;
    const auto table = hn::LoadDup128(d, offset_fp4);
    for (std::size_t i = 0; i < 32 * n; i += hn::MaxLanes(d)) {
      const auto bytes = hn::LoadU(d, blocks[i / 32].nibbles + i % 32);
      const auto low = hn::BitCast(d64, hn::TableLookupBytes(table, hn::And(bytes, hn::Set(d, 15))));
      const auto high = hn::BitCast(d64, hn::TableLookupBytes(table, hn::ShiftRight<4>(bytes)));
      store_pair(d, hn::BitCast(d, hn::InterleaveWholeLower(d64, low, high)),
                 hn::BitCast(d, hn::InterleaveWholeUpper(d64, low, high)), codes + 2 * i);
    }
  }
  static HWY_INLINE void scales(const Block* const* rows, std::size_t n, ChunkScales<format::NVFP4>& out) {
    alignas(64) std::int32_t words[Chunk<format::NVFP4>::blocks][panel_rows];
    gather_words(
        rows, n, [](const Block& block) { return block.scales; }, words);
    MICA_UNROLL
    for (std::size_t b = 0; b < n; ++b) {
      for (std::size_t r = 0; r < panel_rows; r += lanes) {
        const VI word = hn::Load(DI(), words[b] + r);
        hn::Store(whole_scale(bits<0>(word, 255)), DF(), out.scale[4 * b] + r);
        hn::Store(whole_scale(bits<8>(word, 255)), DF(), out.scale[4 * b + 1] + r);
        hn::Store(whole_scale(bits<16>(word, 255)), DF(), out.scale[4 * b + 2] + r);
        hn::Store(whole_scale(bits<24>(word, 255)), DF(), out.scale[4 * b + 3] + r);
        hn::Store(hn::Set(DF(), 0x1p-10f), DF(), out.d[b] + r);
      }
    }
  }

 private:
  /// 512 times the number that a byte stands for: its bits are those of a half float 2^8 times smaller.
  static HWY_INLINE VF whole_scale(VI byte) {
    const VI number = hn::IfThenZeroElse(hn::Eq(byte, hn::Set(DI(), 0x7F)), byte);
    const VI half = hn::ShiftLeft<7>(hn::And(number, hn::Set(DI(), 0x7F)));
    return hn::Mul(widen_low(half), hn::Set(DF(), 0x1p17f));
  }
};

/// The levels of sixteen codes.
HWY_INLINE VF levels_of(VI codes) {
  const DF d;
  const float* const levels = format::NF4::levels;
  if constexpr (lanes == 16) {
    return hn::TableLookupLanes(hn::LoadU(d, levels), hn::IndicesFromVec(d, codes));
  } else if constexpr (lanes == 8) {
    const auto indices = hn::IndicesFromVec(d, codes);
    return hn::TwoTablesLookupLanes(d, hn::LoadU(d, levels), hn::LoadU(d, levels + 8), indices);
  } else {
    return hn::GatherIndex(d, levels, codes);
  }
}

/// Values [k, k + lanes) of a row, k a multiple of lanes.
HWY_INLINE VF values_at(const format::NF4::Block* row, std::size_t k) {
  const format::NF4::Block& block = row[k / 32];
  const hn::Rebind<std::uint8_t, DF> d8;
  const VI bytes = hn::PromoteTo(DI(), hn::LoadU(d8, block.nibbles + k % 16));
  const VI codes = hn::And(hn::ShiftRightSame(bytes, k % 32 < 16 ? 0 : 4), hn::Set(DI(), 15));
  return hn::Mul(widen_low(hn::Set(DI(), block.d.bits)), levels_of(codes));
}

}  // namespace MICA_PER_TARGET
HWY_AFTER_NAMESPACE();
#endif  // MICA_VECTORS
#endif
