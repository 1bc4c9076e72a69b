// SPDX-License-Identifier: Apache-2.0
//
// Per target: dots of four adjacent bytes, added to a sum: exact. There are two kinds of machines:
//
//   quads    one instruction: u8 by s8, on Arm s8 by s8, where it can also pick four bytes out of a vector
//   pairs    products of bytes are added in 16 bits, as many as cannot overflow, and widened once
//
// AVX2 and NEON leave it open which of them a machine is, so their kernels are compiled for both
// (machine_options.hpp). Codes are unsigned (code + offset) for u8 by s8, and signed on Arm and where pairs of
// products would saturate.

#if defined(MICA_KERNEL_HIGHWAY_DOTS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_KERNEL_HIGHWAY_DOTS_INL_HPP
#undef MICA_KERNEL_HIGHWAY_DOTS_INL_HPP
#else
#define MICA_KERNEL_HIGHWAY_DOTS_INL_HPP
#endif

#include "mica/kernel/highway/ops-inl.hpp"

// Whether the machines of this target have a dot of four bytes.
#undef MICA_QUADS
#define MICA_QUADS_NEVER 0
#define MICA_QUADS_MAYBE 1  // machine_options.hpp knows
#define MICA_QUADS_ALWAYS 2
#if HWY_ARCH_X86_64 && HWY_TARGET == HWY_AVX2 && !defined(__AVXVNNI__) && !defined(MICA_NO_BYTE_DOTS)
#define MICA_QUADS MICA_QUADS_MAYBE
#elif HWY_ARCH_X86 && HWY_TARGET > HWY_AVX3_DL && !(HWY_TARGET == HWY_AVX2 && defined(__AVXVNNI__))
#define MICA_QUADS MICA_QUADS_NEVER
#elif HWY_ARCH_ARM && (HWY_TARGET == HWY_NEON_BF16 || defined(__ARM_FEATURE_DOTPROD))
#define MICA_QUADS MICA_QUADS_ALWAYS
#elif HWY_ARCH_ARM_A64 && defined(__linux__) && !defined(MICA_NO_BYTE_DOTS)
#define MICA_QUADS MICA_QUADS_MAYBE
#elif HWY_ARCH_ARM
#define MICA_QUADS MICA_QUADS_NEVER
#else
#define MICA_QUADS MICA_QUADS_ALWAYS
#endif

#if MICA_VECTORS
HWY_BEFORE_NAMESPACE();
namespace MICA_PER_TARGET {

/// Dots of four bytes on every machine of this target.
inline constexpr bool target_quads = MICA_QUADS == MICA_QUADS_ALWAYS;

template <int code_max, bool quads = target_quads>
inline constexpr bool signed_codes = HWY_ARCH_ARM || (!quads && code_max > 128);  // 2 * 128 * 127 < 2^15

/// Dots whose pairs fit 16 bits together.
template <int code_max, bool quads = target_quads>
inline constexpr std::size_t paired_dots = quads || code_max > 128 ? 1 : 32767 / (2 * 127 * code_max);

#if MICA_QUADS != MICA_QUADS_ALWAYS
#if HWY_ARCH_ARM
/// Sums of products, half of the bytes each: the sum of two adjacent ones has to fit as well.
struct Pairs {
  int16x8_t low, high;
};
HWY_INLINE Pairs dot2(VU8 w, VI8 x) {
  const int8x16_t a = vreinterpretq_s8_u8(w.raw);
  return {vmull_s8(vget_low_s8(a), vget_low_s8(x.raw)), vmull_high_s8(a, x.raw)};
}
HWY_INLINE Pairs dot2(VU8 w, VI8 x, Pairs sum) {
  const int8x16_t a = vreinterpretq_s8_u8(w.raw);
  return {vmlal_s8(sum.low, vget_low_s8(a), vget_low_s8(x.raw)), vmlal_high_s8(sum.high, a, x.raw)};
}
HWY_INLINE VI add_pairs(Pairs pairs, VI sum) {
  return VI(vpadalq_s16(sum.raw, vpaddq_s16(pairs.low, pairs.high)));
}
#else
using Pairs = VI16;
HWY_INLINE Pairs dot2(VU8 w, VI8 x) { return hn::SatWidenMulPairwiseAdd(DI16(), w, x); }
HWY_INLINE Pairs dot2(VU8 w, VI8 x, Pairs sum) { return hn::Add(sum, dot2(w, x)); }
HWY_INLINE VI add_pairs(Pairs pairs, VI sum) {
  return hn::Add(sum, hn::WidenMulPairwiseAdd(DI(), pairs, hn::Set(DI16(), 1)));
}
#endif
#else
struct Pairs {};  // never used
HWY_INLINE Pairs dot2(VU8, VI8) { return {}; }
HWY_INLINE Pairs dot2(VU8, VI8, Pairs) { return {}; }
HWY_INLINE VI add_pairs(Pairs, VI sum) { return sum; }
#endif

/// The machine's own dot. Where the instruction set does not guarantee it, it is written as inline assembly.
#if HWY_ARCH_ARM && MICA_QUADS != MICA_QUADS_NEVER
#if MICA_QUADS == MICA_QUADS_MAYBE
// SDOT in figures, as assemblers refuse its name where the flags lack it: the numbers of the registers are
// put into the code. Arm Architecture Reference Manual, "SDOT (vector)" and "SDOT (by element)".
#define MICA_SDOT                                                                                   \
  ".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n" \
  ".set .Lmica_v\\n, \\n\n.endr\n\t.inst %c3 | .Lmica_%0 | .Lmica_%1 << 5 | .Lmica_%2 << 16"
#endif
HWY_INLINE VI dot_quads(VU8 w, VI8 x, VI sum) {
#if MICA_QUADS == MICA_QUADS_MAYBE
  asm inline(MICA_SDOT : "+w"(sum.raw) : "w"(w.raw), "w"(x.raw), "i"(0x4e809400u));
#else
  sum.raw = vdotq_s32(sum.raw, vreinterpretq_s8_u8(w.raw), x.raw);
#endif
  return sum;
}
/// The dot of w and word i of x, whose lanes are words.
template <int i>
HWY_INLINE VI dot_quads_word(VU8 w, VI8 x, VI sum) {
#if MICA_QUADS == MICA_QUADS_MAYBE
  asm inline(MICA_SDOT
             : "+w"(sum.raw)
             : "w"(w.raw), "w"(x.raw), "i"(0x4f80e000u | (i & 1) << 21 | (i >> 1) << 11));
#else
  sum.raw = vdotq_laneq_s32(sum.raw, vreinterpretq_s8_u8(w.raw), x.raw, i);
#endif
  return sum;
}
#undef MICA_SDOT
#else
HWY_INLINE VI dot_quads(VU8 w, VI8 x, VI sum) {
#if MICA_QUADS == MICA_QUADS_MAYBE
#ifdef MICA_EVEX_DOTS  // the same instruction in the form of AVX-512, for tests on machines that have no other
  asm("%{evex%} vpdpbusd %2, %1, %0" : "+x"(sum.raw) : "x"(w.raw), "x"(x.raw));
#else
  asm("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum.raw) : "x"(w.raw), "x"(x.raw));
#endif
  return sum;
#elif HWY_TARGET == HWY_AVX2 && MICA_QUADS == MICA_QUADS_ALWAYS
  return VI{_mm256_dpbusd_avx_epi32(sum.raw, w.raw, x.raw)};
#else
  return hn::SumOfMulQuadAccumulate(DI(), w, x, sum);
#endif
}
#endif

template <int code_max, bool quads = target_quads>
HWY_INLINE VI dot4(VU8 w, VI8 x, VI sum) {
  if constexpr (quads) {
    return dot_quads(w, x, sum);
  } else {
    if constexpr (HWY_ARCH_X86 && signed_codes<code_max, quads>) {
      const VI8 sign = hn::BitCast(DI8(), w);
      w = hn::BitCast(DU8(), hn::Abs(sign));
      x = hn::IfNegativeThenNegOrUndefIfZero(sign, x);
    }
    return add_pairs(dot2(w, x), sum);
  }
}

/// Lines that meet the words of a token together: on Arm a dot picks a word out of a vector, elsewhere it is
/// broadcast.
template <bool quads>
inline constexpr std::size_t line_words = quads&& HWY_ARCH_ARM ? 4 : 1;

/// Adds the dots of lines w and the words of a token from x on.
template <int code_max, bool quads>
HWY_INLINE VI dot_words(const VU8 (&w)[line_words<quads>], const std::int8_t* x, VI sum) {
#if HWY_ARCH_ARM && MICA_QUADS != MICA_QUADS_NEVER
  if constexpr (quads) {
    const VI8 words = hn::LoadU(DI8(), x);
    sum = dot_quads_word<0>(w[0], words, sum);
    sum = dot_quads_word<1>(w[1], words, sum);
    sum = dot_quads_word<2>(w[2], words, sum);
    return dot_quads_word<3>(w[3], words, sum);
  }
#endif
  return dot4<code_max, quads>(w[0], hn::BitCast(DI8(), broadcast4(x)), sum);
}

/// Loads stay behind this line: gcc for Arm would have all of a tile's loads first, and no registers for
/// them.
HWY_INLINE void keep_order() {
#if HWY_ARCH_ARM
  asm volatile("" ::: "memory");
#endif
}

}  // namespace MICA_PER_TARGET
HWY_AFTER_NAMESPACE();
#endif  // MICA_VECTORS
#endif
