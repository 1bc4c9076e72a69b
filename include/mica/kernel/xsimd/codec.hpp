// SPDX-License-Identifier: Apache-2.0
//
// How the blocks of packed rows (tensor/detail/rows16.hpp) become lines of a panel. Lanes are rows. A codec
// has
//
//   period                    values after which the codes of a block repeat their pattern of bytes and bits
//   line<A, i>(p, s)          code + code_offset of values i .. i + 3 of period s; p is word 0 of the block's
//                             codes, of the first row
//   scales<A>(p, b, r, out)   the scales of block b of a chunk, rows [r, r + lanes); p: the block's scale bytes
//
// Formats without a codec are unpacked by their own code (fill.hpp).
#pragma once

#include "mica/format/few_bits.hpp"
#include "mica/format/fp4.hpp"
#include "mica/format/iq4.hpp"
#include "mica/format/k.hpp"
#include "mica/format/legacy.hpp"
#include "mica/format/q8_0.hpp"
#include "mica/kernel/xsimd/panel.hpp"

namespace mica::kernel::xsimd {

template <class F>
struct Codec;

template <class F>
concept HasCodec = requires {
  Codec<F>::period;
};

// ---- what codecs share

/// Word w of as many rows as a vector has lanes.
template <class A>
VU8<A> word(const std::uint8_t* p, std::size_t w) noexcept {
  return VU8<A>::load_unaligned(p + 4 * panel_rows * w);
}
template <class A>
VU<A> scale_word(const std::uint8_t* p, std::size_t w, std::size_t r) noexcept {
  return VU<A>::load_unaligned(reinterpret_cast<const std::uint32_t*>(p + 4 * (panel_rows * w + r)));
}

/// Every byte's bits from `from` on, moved to `to` on; what `mask` (of a byte) leaves of them.
template <int from, int to, class A>
VU8<A> move_bits(VU8<A> v, std::uint8_t mask) noexcept {
  const VU<A> words = ::xsimd::bitwise_cast<std::uint32_t>(v);
  if constexpr (from < to) v = ::xsimd::bitwise_cast<std::uint8_t>(words << (to - from));
  if constexpr (from > to) v = ::xsimd::bitwise_cast<std::uint8_t>(words >> (from - to));
  return v & VU8<A>(mask);
}
template <bool high, class A>
VU8<A> nibble(VU8<A> v) noexcept {
  return move_bits < high ? 4 : 0, 0 > (v, 15);
}

/// `mask` of every lane's bits from `shift` on, as a float.
template <class A>
VF<A> bits(VU<A> v, int shift, std::uint32_t mask) noexcept {
  return ::xsimd::to_float(::xsimd::bitwise_cast<std::int32_t>((v >> shift) & VU<A>(mask)));
}

/// The half floats in the lower and upper halves of lanes.
template <class A>
VF<A> low_half(VU<A> v) noexcept {
  return widened(::xsimd::bitwise_cast<std::int32_t>(v << 16), Half());
}
template <class A>
VF<A> high_half(VU<A> v) noexcept {
  return widened(::xsimd::bitwise_cast<std::int32_t>((v >> 16) << 16), Half());
}

/// The half float d, which lies behind `at` other scale bytes.
template <class A, std::size_t at = 0>
void set_d(const std::uint8_t* p, std::size_t b, std::size_t r, PanelScales& out) noexcept {
  alignas(64) std::int32_t high[lanes<A>];
  for (std::size_t i = 0; i < lanes<A>; ++i) {
    std::uint16_t half;
    std::memcpy(&half, p + panel_rows * at + 2 * (r + i), 2);
    high[i] = half << 16;
  }
  widened(VI<A>::load_unaligned(high), Half()).store_unaligned(out.d[b] + r);
}
struct OneScale {
  template <class A>
  static void scales(const std::uint8_t* p, std::size_t b, std::size_t r, PanelScales& out) noexcept {
    set_d<A>(p, b, r, out);
  }
};

/// Blocks with one scale and one offset, the half floats d and m: the offset is a min of 1 with dmin = -m.
struct ScaleAndOffset {
  template <class A>
  static void scales(const std::uint8_t* p, std::size_t b, std::size_t r, PanelScales& out) noexcept {
    const VU<A> both = scale_word<A>(p, 0, r);
    low_half(both).store_unaligned(out.d[b] + r);
    high_half(both).store_unaligned(out.minus_dmin[b] + r);
    VF<A>(1.0f).store_unaligned(out.min[b] + r);
  }
};

// ---- 32 values in four to eight bits

/// 32 nibbles, those of the first half of the values low.
struct Nibbles {
  static constexpr std::size_t period = 32;
  template <class A, std::size_t i>
  static VU8<A> line(const std::uint8_t* p, std::size_t s) noexcept {
    return nibble<(i >= 16)>(word<A>(p, 4 * s + i % 16 / 4));
  }
};

/// 32 nibbles after a word of fifth bits.
struct FiveBits {
  static constexpr std::size_t period = 32;
  template <class A, std::size_t i>
  static VU8<A> line(const std::uint8_t* p, std::size_t) noexcept {
    return nibble<(i >= 16)>(word<A>(p, 1 + i % 16 / 4)) | move_bits<i / 4, 4>(word<A>(p, 0), 16);
  }
};

template <>
struct Codec<format::Q4_0> : OneScale, Nibbles {};
template <>
struct Codec<format::Q4_1> : ScaleAndOffset, Nibbles {};
template <>
struct Codec<format::Q5_0> : OneScale, FiveBits {};
template <>
struct Codec<format::Q5_1> : ScaleAndOffset, FiveBits {};

template <>
struct Codec<format::Q8_0> : OneScale {
  static constexpr std::size_t period = 32;
  template <class A, std::size_t i>
  static VU8<A> line(const std::uint8_t* p, std::size_t) noexcept {
    return word<A>(p, i / 4) ^ VU8<A>(0x80);  // code + 128
  }
};

// ---- 32 or 256 values in levels

/// levels[i] + offset.
struct LevelTable {
  alignas(16) std::uint8_t entry[16] = {};
  constexpr LevelTable(const std::int8_t (&levels)[16], int offset) noexcept {
    for (std::size_t i = 0; i < 16; ++i) entry[i] = static_cast<std::uint8_t>(levels[i] + offset);
  }
};
inline constexpr LevelTable iq4_table{format::IQ4_NL::levels, format::IQ4_NL::code_offset};
inline constexpr LevelTable fp4_table{format::detail::doubled_fp4, format::MXFP4::code_offset};

/// Nibbles that stand for the sixteen entries of a table.
template <const LevelTable& table>
struct Levels {
  static constexpr std::size_t period = 32;
  template <class A, std::size_t i>
  static VU8<A> line(const std::uint8_t* p, std::size_t s) noexcept {
    return lookup16<A>(table.entry, Nibbles::line<A, i>(p, s));
  }
};

template <>
struct Codec<format::IQ4_NL> : OneScale, Levels<iq4_table> {};

template <>
struct Codec<format::IQ4_XS> : Levels<iq4_table> {
  /// Two words: d and the high bits of scales, and their low bits.
  template <class A>
  static void scales(const std::uint8_t* p, std::size_t b, std::size_t r, PanelScales& out) noexcept {
    const VU<A> d_and_high = scale_word<A>(p, 0, r), low = scale_word<A>(p, 1, r);
    low_half(d_and_high).store_unaligned(out.d[b] + r);
    for (int g = 0; g < 8; ++g) {
      const VF<A> scale =
          bits(low, 4 * g, 15) + bits(d_and_high, 16 + 2 * g, 3) * VF<A>(16.0f) - VF<A>(32.0f);  // exact
      scale.store_unaligned(out.scale[g] + r);
    }
  }
};

template <>
struct Codec<format::MXFP4> : Levels<fp4_table> {
  template <class A>
  static void scales(const std::uint8_t* p, std::size_t b, std::size_t r, PanelScales& out) noexcept {
    for (std::size_t i = r; i < r + lanes<A>; ++i) out.d[b][i] = format::MXFP4::half_scale(p[i]);
  }
};

// ---- 256 values in groups with scales of their own

/// 256 codes of two bits.
struct BitPairs {
  static constexpr std::size_t period = 128;
  template <class A, std::size_t i>
  static VU8<A> line(const std::uint8_t* p, std::size_t s) noexcept {
    return move_bits<2 * (i / 32), 0>(word<A>(p, 8 * s + i % 32 / 4), 3);
  }
};

template <>
struct Codec<format::TQ2_0> : BitPairs {
  /// d alone, beside scales of 1.
  template <class A>
  static void scales(const std::uint8_t* p, std::size_t b, std::size_t r, PanelScales& out) noexcept {
    for (std::size_t g = 0; g < 8; ++g) VF<A>(1.0f).store_unaligned(out.scale[g] + r);
    set_d<A>(p, b, r, out);
  }
};

template <>
struct Codec<format::Q2_K> : BitPairs {
  /// Four words of four groups, and one of d and dmin.
  template <class A>
  static void scales(const std::uint8_t* p, std::size_t b, std::size_t r, PanelScales& out) noexcept {
    for (std::size_t g = 0; g < 16; ++g) {
      const VU<A> four = scale_word<A>(p, g / 4, r);
      bits(four, static_cast<int>(8 * (g % 4)), 15).store_unaligned(out.scale[g] + r);
      bits(four, static_cast<int>(8 * (g % 4) + 4), 15).store_unaligned(out.min[g] + r);
    }
    const VU<A> both = scale_word<A>(p, 4, r);
    low_half(both).store_unaligned(out.d[b] + r);
    (-high_half(both)).store_unaligned(out.minus_dmin[b] + r);
  }
};

template <>
struct Codec<format::Q3_K> {
  static constexpr std::size_t period = 128;
  template <class A, std::size_t i>
  static VU8<A> line(const std::uint8_t* p, std::size_t s) noexcept {
    const VU<A> high =
        ::xsimd::bitwise_cast<std::uint32_t>(word<A>(p, i % 32 / 4)) >> static_cast<int>(4 * s);
    return move_bits<2 * (i / 32), 0>(word<A>(p, 8 + 8 * s + i % 32 / 4), 3) |
           move_bits<i / 32, 2>(::xsimd::bitwise_cast<std::uint8_t>(high), 4);
  }
  /// Two words of low bits, one of high bits, and d.
  template <class A>
  static void scales(const std::uint8_t* p, std::size_t b, std::size_t r, PanelScales& out) noexcept {
    const VU<A> high = scale_word<A>(p, 2, r);
    for (std::size_t g = 0; g < 16; ++g) {
      const VF<A> low = bits(scale_word<A>(p, g % 8 / 4, r), static_cast<int>(8 * (g % 4) + g / 8 * 4), 15),
                  top = bits(high, static_cast<int>(8 * (g % 4) + 2 * (g / 4)), 3);
      (low + top * VF<A>(16.0f) - VF<A>(32.0f)).store_unaligned(out.scale[g] + r);  // exact
    }
    set_d<A, 12>(p, b, r, out);
  }
};

/// Blocks that begin with four words: d and dmin, and three of scale bytes.
struct SixBitScales {
  template <class A>
  static void scales(const std::uint8_t* p, std::size_t b, std::size_t r, PanelScales& out) noexcept {
    const VU<A> both = scale_word<A>(p, 0, r), low = scale_word<A>(p, 1, r), middle = scale_word<A>(p, 2, r),
                high = scale_word<A>(p, 3, r);
    low_half(both).store_unaligned(out.d[b] + r);
    (-high_half(both)).store_unaligned(out.minus_dmin[b] + r);
    for (int g = 0; g < 4; ++g) {
      bits(low, 8 * g, 63).store_unaligned(out.scale[g] + r);
      bits(middle, 8 * g, 63).store_unaligned(out.min[g] + r);
      upper(high, 8 * g, low, 8 * g + 6).store_unaligned(out.scale[g + 4] + r);
      upper(high, 8 * g + 4, middle, 8 * g + 6).store_unaligned(out.min[g + 4] + r);
    }
  }

 private:
  /// Four bits and two bits above them.
  template <class A>
  static VF<A> upper(VU<A> four, int at, VU<A> two, int two_at) noexcept {
    const VU<A> v = ((four >> at) & VU<A>(15)) | (((two >> two_at) & VU<A>(3)) << 4);
    return ::xsimd::to_float(::xsimd::bitwise_cast<std::int32_t>(v));
  }
};

template <>
struct Codec<format::Q4_K> : SixBitScales {
  static constexpr std::size_t period = 64;
  template <class A, std::size_t i>
  static VU8<A> line(const std::uint8_t* p, std::size_t s) noexcept {
    return nibble<(i >= 32)>(word<A>(p, 8 * s + i % 32 / 4));
  }
};

template <>
struct Codec<format::Q5_K> : SixBitScales {
  static constexpr std::size_t period = 64;
  template <class A, std::size_t i>
  static VU8<A> line(const std::uint8_t* p, std::size_t s) noexcept {
    const VU<A> high =
        ::xsimd::bitwise_cast<std::uint32_t>(word<A>(p, i % 32 / 4)) >> static_cast<int>(2 * s);
    return nibble<(i >= 32)>(word<A>(p, 8 + 8 * s + i % 32 / 4)) |
           move_bits<(i >= 32 ? 1 : 0), 4>(::xsimd::bitwise_cast<std::uint8_t>(high), 16);
  }
};

template <>
struct Codec<format::Q6_K> {
  static constexpr std::size_t period = 128;
  template <class A, std::size_t i>
  static VU8<A> line(const std::uint8_t* p, std::size_t s) noexcept {
    return nibble<(i >= 64)>(word<A>(p, 16 * s + i % 64 / 4)) |
           move_bits<2 * (i / 32), 4>(word<A>(p, 32 + 8 * s + i % 32 / 4), 0x30);
  }
  /// Four words of four signed scales, and d.
  template <class A>
  static void scales(const std::uint8_t* p, std::size_t b, std::size_t r, PanelScales& out) noexcept {
    for (std::size_t g = 0; g < 16; ++g) {
      const VI<A> four = ::xsimd::bitwise_cast<std::int32_t>(scale_word<A>(p, g / 4, r));
      ::xsimd::to_float((four << static_cast<int>(24 - 8 * (g % 4))) >> 24).store_unaligned(out.scale[g] + r);
    }
    set_d<A, 16>(p, b, r, out);
  }
};

}  // namespace mica::kernel::xsimd
