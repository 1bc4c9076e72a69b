// SPDX-License-Identifier: Apache-2.0
//
// Per target: the formats with one scale and perhaps one offset (format/ has the layouts).

#if defined(MICA_KERNEL_HIGHWAY_DECODE_ONE_SCALE_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_KERNEL_HIGHWAY_DECODE_ONE_SCALE_INL_HPP
#undef MICA_KERNEL_HIGHWAY_DECODE_ONE_SCALE_INL_HPP
#else
#define MICA_KERNEL_HIGHWAY_DECODE_ONE_SCALE_INL_HPP
#endif

#include "mica/kernel/highway/codec-inl.hpp"

#if MICA_VECTORS
HWY_BEFORE_NAMESPACE();
namespace MICA_PER_TARGET {

// ---- 32 values in four to eight bits

/// 32 nibbles, those of the first half of the values low.
struct Nibbles {
  template <class Block>
  static HWY_INLINE void unpack(const Block* blocks, std::size_t n, std::uint8_t* HWY_RESTRICT codes) {
    unpack_nibbles(blocks, n, codes, [](auto, auto v, std::size_t, std::size_t) HWY_ATTR { return v; });
  }

  static constexpr std::size_t period = 32;
  template <std::size_t i>
  static HWY_INLINE VU8 line(const std::uint8_t* p, std::size_t) {
    return nibble<(i >= 16)>(packed_word(p, i % 16 / 4));
  }
};

template <>
struct Codec<format::Q4_0> : OneScale<format::Q4_0>, Nibbles {};

template <>
struct Codec<format::Q4_1> : ScaleAndOffset<format::Q4_1>, Nibbles {};

/// The fifth bits of 32 codes each, from value i of the first block on, in place.
template <class D, class Block>
HWY_INLINE hn::Vec<D> fifth_bits(D d, const Block* blocks, std::size_t i) {
  if constexpr (hn::MaxLanes(D()) == 64) {
    const hn::Half<D> half;
    const auto set =
        hn::CombineMasks(d, hn::LoadMaskBits(half, blocks[1].high), hn::LoadMaskBits(half, blocks[0].high));
    return hn::IfThenElseZero(set, hn::Set(d, 16));
  } else {
    return hn::IfThenElseZero(hn::LoadMaskBits(d, blocks[0].high + i / 8), hn::Set(d, 16));
  }
}

/// 32 nibbles as in Nibbles, after a word of fifth bits.
struct FiveBits {
  template <class Block>
  static HWY_INLINE void unpack(const Block* blocks, std::size_t n, std::uint8_t* HWY_RESTRICT codes) {
    unpack_nibbles(blocks, n, codes, [blocks](auto d, auto v, std::size_t b, std::size_t i) HWY_ATTR {
      return hn::Or(v, fifth_bits(d, blocks + b, i));
    });
  }

  static constexpr std::size_t period = 32;
  template <std::size_t i>
  static HWY_INLINE VU8 line(const std::uint8_t* p, std::size_t) {
    return hn::Or(nibble<(i >= 16)>(packed_word(p, 1 + i % 16 / 4)),
                  move_bits<i / 4, 4>(packed_word(p, 0), 16));
  }
};

template <>
struct Codec<format::Q5_0> : OneScale<format::Q5_0>, FiveBits {};

template <>
struct Codec<format::Q5_1> : ScaleAndOffset<format::Q5_1>, FiveBits {};

template <>
struct Codec<format::Q8_0> : OneScale<format::Q8_0> {
  static HWY_INLINE void unpack(const Block* blocks, std::size_t n, std::uint8_t* HWY_RESTRICT codes) {
    const hn::CappedTag<std::uint8_t, 32> d;
    const auto from = [blocks, d](std::size_t b, std::size_t i) HWY_ATTR {
      const auto* const code = reinterpret_cast<const std::uint8_t*>(blocks[b].code);
      return hn::Xor(hn::LoadU(d, code + i), hn::Set(d, 128));
    };
    std::size_t b = 0;
    for (; hn::MaxLanes(d) == 32 && b + 1 < n; b += 2)
      store_pair(d, from(b, 0), from(b + 1, 0), codes + 32 * b);
    for (; b < n; ++b) {
      for (std::size_t i = 0; i < 32; i += hn::MaxLanes(d)) hn::StoreU(from(b, i), d, codes + 32 * b + i);
    }
  }
  static constexpr std::size_t period = 32;
  template <std::size_t i>
  static HWY_INLINE VU8 line(const std::uint8_t* p, std::size_t) {
    return hn::Xor(packed_word(p, i / 4), hn::Set(DU8(), 128));
  }
};

// ---- one and two bits

template <>
struct Codec<format::Q1_0> : OneScale<format::Q1_0> {
  static HWY_INLINE void unpack(const Block* blocks, std::size_t n, std::uint8_t* HWY_RESTRICT codes) {
    const DU8 d;
    for (std::size_t i = 0; i < 128 * n; i += hn::MaxLanes(d)) {
      const auto set = hn::LoadMaskBits(d, blocks[i / 128].bits + i % 128 / 8);
      hn::StoreU(hn::IfThenElseZero(set, hn::Set(d, 2)), d, codes + i);
    }
  }
};

template <>
struct Codec<format::Q2_0> : OneScale<format::Q2_0> {
  /// A byte b becomes the word b | b << 6 | b << 12 | b << 18, which has a code at the foot of every byte.
  static HWY_INLINE void unpack(const Block* blocks, std::size_t n, std::uint8_t* HWY_RESTRICT codes) {
    const hn::Rebind<std::uint8_t, DU> d;
    for (std::size_t i = 0; i < 16 * n; i += lanes) {
      auto words = hn::PromoteTo(DU(), hn::LoadU(d, blocks[i / 16].pairs + i % 16));
      words = hn::Or(words, hn::ShiftLeft<6>(words));
      words = hn::And(hn::Or(words, hn::ShiftLeft<12>(words)), hn::Set(DU(), 0x03030303));
      hn::StoreU(hn::BitCast(DU8(), words), DU8(), codes + 4 * i);
    }
  }
};

template <>
struct Codec<format::TQ1_0> : OneScale<format::TQ1_0> {
  static HWY_INLINE void unpack(const Block& block, std::uint8_t* HWY_RESTRICT codes) {
    const hn::CappedTag<std::uint8_t, 32> d32;
    const hn::CappedTag<std::uint8_t, 16> d16;
    const hn::CappedTag<std::uint8_t, 4> d4;
    for (std::size_t j = 0; j < 32; j += hn::MaxLanes(d32))
      take_digits(d32, block.digits + j, 32, 5, codes + j);
    take_digits(d16, block.digits + 32, 16, 5, codes + 160);
    take_digits(d4, block.digits + 48, 4, 4, codes + 240);
  }

 private:
  /// A digit is how many thirds of 256 a byte has passed; the next byte is three times this one.
  template <class D>
  static HWY_INLINE void take_digits(D d, const std::uint8_t* bytes, std::size_t stride, std::size_t places,
                                     std::uint8_t* HWY_RESTRICT codes) {
    auto fraction = hn::LoadU(d, bytes);
    MICA_UNROLL
    for (std::size_t place = 0; place < places; ++place) {
      const auto one = hn::Min(hn::SaturatedSub(fraction, hn::Set(d, 85)), hn::Set(d, 1));
      const auto two = hn::Min(hn::SaturatedSub(fraction, hn::Set(d, 170)), hn::Set(d, 1));
      hn::StoreU(hn::Add(one, two), d, codes + place * stride);
      fraction = hn::Add(fraction, hn::Add(fraction, fraction));
    }
  }
};

template <>
struct Codec<format::TQ2_0> : OneScale<format::TQ2_0>, BitPairs {};

}  // namespace MICA_PER_TARGET
HWY_AFTER_NAMESPACE();
#endif  // MICA_VECTORS
#endif
