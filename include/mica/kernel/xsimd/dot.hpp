// SPDX-License-Identifier: Apache-2.0
//
// Dots of four adjacent bytes, added to the lanes of a sum: exact. xsimd has no such operation, so this file
// and words.hpp, and no others, have intrinsics. There are three kinds of machines:
//
//   quads    one instruction, u8 by s8 (AVX-512 VNNI, AVX-VNNI)
//   pairs    u8 by s8, two products are added in 16 bits and two of those sums in 32 (SSSE3 to AVX-512)
//   others   s8 by s8, on lanes of 16 bits, by operations of xsimd alone
//
// Codes are unsigned (code + offset) for u8 by s8, and signed for others and where pairs would saturate.
#pragma once

#include "mica/kernel/xsimd/vectors.hpp"

namespace mica::kernel::xsimd {

enum class Dots : unsigned char { quads, pairs, others };

template <class A>
inline constexpr Dots dots_of = std::is_base_of_v<::xsimd::ssse3, A> || std::is_base_of_v<::xsimd::avx2, A> ||
                                        std::is_base_of_v<::xsimd::avx512bw, A>
                                    ? Dots::pairs
                                    : Dots::others;
template <class Base>
inline constexpr Dots dots_of<::xsimd::avx512vnni<Base>> = Dots::quads;
template <>
inline constexpr Dots dots_of<::xsimd::avxvnni> = Dots::quads;

/// Whether codes up to code_max, an offset included, are multiplied without it.
template <class A, int code_max>
inline constexpr bool signed_codes = dots_of<A> == Dots::others ||
                                     (dots_of<A> == Dots::pairs && code_max > 128);  // 2 * 128 * 127 < 2^15

// Of Dots::quads, where the flags have them.
#if defined(__AVX512VNNI__)
[[gnu::always_inline]] inline __m512i dot_quads(__m512i w, __m512i x, __m512i sum) noexcept {
  return _mm512_dpbusd_epi32(sum, w, x);
}
#endif
#if defined(__AVXVNNI__)
[[gnu::always_inline]] inline __m256i dot_quads(__m256i w, __m256i x, __m256i sum) noexcept {
  return _mm256_dpbusd_avx_epi32(sum, w, x);
}
#endif

// Of Dots::pairs: no pair of products exceeds 16 bits.
#if defined(__SSSE3__)
[[gnu::always_inline]] inline __m128i dot_pairs(__m128i w, __m128i x) noexcept {
  return _mm_madd_epi16(_mm_maddubs_epi16(w, x), _mm_set1_epi16(1));
}
#endif
#if defined(__AVX2__)
[[gnu::always_inline]] inline __m256i dot_pairs(__m256i w, __m256i x) noexcept {
  return _mm256_madd_epi16(_mm256_maddubs_epi16(w, x), _mm256_set1_epi16(1));
}
#endif
#if defined(__AVX512BW__)
[[gnu::always_inline]] inline __m512i dot_pairs(__m512i w, __m512i x) noexcept {
  return _mm512_madd_epi16(_mm512_maddubs_epi16(w, x), _mm512_set1_epi16(1));
}
#endif

/// The portable form: pairs of products of signed bytes fit into 16 bits, since x is at least -127.
template <class A>
[[gnu::always_inline]] inline VI<A> dot_signed(VI8<A> w, VI8<A> x, VI<A> sum) noexcept {
  const auto w16 = ::xsimd::bitwise_cast<std::int16_t>(w), x16 = ::xsimd::bitwise_cast<std::int16_t>(x);
  const auto even = ((w16 << 8) >> 8) * ((x16 << 8) >> 8), odd = (w16 >> 8) * (x16 >> 8);
  const auto pairs = ::xsimd::bitwise_cast<std::int32_t>(even + odd);
  return sum + ((pairs << 16) >> 16) + (pairs >> 16);
}

/// sum plus, in each lane, the products of four codes and four activations. with_sign: codes are signed
/// bytes, as signed_codes says.
template <bool with_sign, class A>
[[gnu::always_inline]] inline VI<A> dot4(VU8<A> w, VI8<A> x, VI<A> sum) noexcept {
  if constexpr (dots_of<A> == Dots::quads) {
    return dot_quads(w.data, x.data, sum.data);
  } else if constexpr (dots_of<A> == Dots::others) {
    return dot_signed(::xsimd::bitwise_cast<std::int8_t>(w), x, sum);
  } else if constexpr (with_sign) {
    const VI8<A> sign = ::xsimd::bitwise_cast<std::int8_t>(w);
    const VI8<A> turned = ::xsimd::select(sign < VI8<A>(0), -x, x);
    return sum + VI<A>(dot_pairs(::xsimd::abs(sign).data, turned.data));
  } else {
    return sum + VI<A>(dot_pairs(w.data, x.data));
  }
}

/// Four bytes in every lane.
template <class A>
[[gnu::always_inline]] inline VI8<A> broadcast4(const std::int8_t* p) noexcept {
  std::int32_t four;
  std::memcpy(&four, p, 4);
  return ::xsimd::bitwise_cast<std::int8_t>(VI<A>(four));
}

}  // namespace mica::kernel::xsimd
