// SPDX-License-Identifier: Apache-2.0
//
// Words of four bytes of sixteen rows, transposed: a vector has one word of as many rows as it has lanes.
// xsimd's zips and table lookups cross the whole vector, those here stay in blocks of 128 bits, so wider
// vectors need intrinsics. With dot.hpp the only file that has them.
#pragma once

#include "mica/kernel/xsimd/vectors.hpp"

namespace mica::kernel::xsimd {

/// Rows that are computed together.
inline constexpr std::size_t panel_rows = 16;

/// Asks for the cache line `ahead` bytes behind p, into the second level: the first cannot hold all that is
/// on its way.
template <class T>
[[gnu::always_inline]] inline void prefetch(const T* p, std::size_t ahead) noexcept {
  __builtin_prefetch(reinterpret_cast<const char*>(reinterpret_cast<std::uintptr_t>(p) + ahead), 0, 2);
}

/// Whether an architecture has what this file needs.
template <class A>
inline constexpr bool has_words =
    lanes<A> == 4 || std::is_base_of_v<::xsimd::avx2, A> || std::is_base_of_v<::xsimd::avx512bw, A>;

/// Bytes of sixteen rows at equal distances.
struct RowBytes {
  const std::byte* first;
  std::size_t stride;

  [[nodiscard]] const std::byte* operator[](std::size_t r) const noexcept { return first + stride * r; }
  /// The same, `bytes` later in every row.
  [[nodiscard]] RowBytes from(std::size_t bytes) const noexcept { return {first + bytes, stride}; }
};

namespace detail {

/// Operations on blocks of 128 bits, here of vectors that are one block.
template <class A, std::size_t n = lanes<A>>
struct Blocks {
  static VI<A> load(const std::byte* const (&block)[n / 4]) noexcept {
    return VI<A>::load_unaligned(reinterpret_cast<const std::int32_t*>(block[0]));
  }
  static VI<A> zip_low(VI<A> a, VI<A> b) noexcept { return ::xsimd::zip_lo(a, b); }
  static VI<A> zip_high(VI<A> a, VI<A> b) noexcept { return ::xsimd::zip_hi(a, b); }
  static VI<A> zip_low_pairs(VI<A> a, VI<A> b) noexcept {
    return ::xsimd::bitwise_cast<std::int32_t>(
        ::xsimd::zip_lo(::xsimd::bitwise_cast<std::int64_t>(a), ::xsimd::bitwise_cast<std::int64_t>(b)));
  }
  static VI<A> zip_high_pairs(VI<A> a, VI<A> b) noexcept {
    return ::xsimd::bitwise_cast<std::int32_t>(
        ::xsimd::zip_hi(::xsimd::bitwise_cast<std::int64_t>(a), ::xsimd::bitwise_cast<std::int64_t>(b)));
  }
  static VU8<A> lookup(const std::uint8_t* table, VU8<A> indices) noexcept {
    return ::xsimd::swizzle(VU8<A>::load_unaligned(table), indices);
  }
};

#if defined(__AVX2__)
[[gnu::always_inline]] inline __m128i load_block(const std::byte* p) noexcept {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
}
template <class A>
struct Blocks<A, 8> {
  static VI<A> load(const std::byte* const (&block)[2]) noexcept {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(load_block(block[0])), load_block(block[1]), 1);
  }
  static VI<A> zip_low(VI<A> a, VI<A> b) noexcept { return _mm256_unpacklo_epi32(a, b); }
  static VI<A> zip_high(VI<A> a, VI<A> b) noexcept { return _mm256_unpackhi_epi32(a, b); }
  static VI<A> zip_low_pairs(VI<A> a, VI<A> b) noexcept { return _mm256_unpacklo_epi64(a, b); }
  static VI<A> zip_high_pairs(VI<A> a, VI<A> b) noexcept { return _mm256_unpackhi_epi64(a, b); }
  static VU8<A> lookup(const std::uint8_t* table, VU8<A> indices) noexcept {
    const auto* const bytes = reinterpret_cast<const std::byte*>(table);
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(load_block(bytes)), indices);
  }
};
#endif

#if defined(__AVX512BW__)
template <class A>
struct Blocks<A, 16> {
  static VI<A> load(const std::byte* const (&block)[4]) noexcept {
    __m512i words = _mm512_castsi128_si512(load_block(block[0]));
    words = _mm512_inserti32x4(words, load_block(block[1]), 1);
    words = _mm512_inserti32x4(words, load_block(block[2]), 2);
    return _mm512_inserti32x4(words, load_block(block[3]), 3);
  }
  static VI<A> zip_low(VI<A> a, VI<A> b) noexcept { return _mm512_unpacklo_epi32(a, b); }
  static VI<A> zip_high(VI<A> a, VI<A> b) noexcept { return _mm512_unpackhi_epi32(a, b); }
  static VI<A> zip_low_pairs(VI<A> a, VI<A> b) noexcept { return _mm512_unpacklo_epi64(a, b); }
  static VI<A> zip_high_pairs(VI<A> a, VI<A> b) noexcept { return _mm512_unpackhi_epi64(a, b); }
  static VU8<A> lookup(const std::uint8_t* table, VU8<A> indices) noexcept {
    const auto* const bytes = reinterpret_cast<const std::byte*>(table);
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(load_block(bytes)), indices);
  }
};
#endif

}  // namespace detail

/// table[indices], of a table of 16 bytes.
template <class A>
VU8<A> lookup16(const std::uint8_t* table, VU8<A> indices) noexcept {
  return detail::Blocks<A>::lookup(table, indices);
}

/// word[i] = word i of four at the bytes rows[r] + at, lanes are rows from `row` on.
template <class A>
[[gnu::always_inline]] inline void load_words(RowBytes rows, std::size_t at, std::size_t row,
                                              VI<A> (&word)[4]) noexcept {
  using B = detail::Blocks<A>;
  unrolled<4>([&](auto i) {
    const std::byte* block[lanes<A> / 4];
    unrolled<lanes<A> / 4>([&](auto j) { block[j] = rows[row + 4 * j + i] + at; });
    word[i] = B::load(block);
  });
  const VI<A> low[2] = {B::zip_low(word[0], word[1]), B::zip_low(word[2], word[3])};
  const VI<A> high[2] = {B::zip_high(word[0], word[1]), B::zip_high(word[2], word[3])};
  word[0] = B::zip_low_pairs(low[0], low[1]);
  word[1] = B::zip_high_pairs(low[0], low[1]);
  word[2] = B::zip_low_pairs(high[0], high[1]);
  word[3] = B::zip_high_pairs(high[0], high[1]);
}

/// `bytes` bytes at rows[r] + at go to out[bytes r].
template <std::size_t bytes>
[[gnu::always_inline]] inline void copy_units(RowBytes rows, std::size_t at, std::byte* out) noexcept {
  for (std::size_t r = 0; r < panel_rows; ++r) std::memcpy(out + bytes * r, rows[r] + at, bytes);
}

/// Word w of `words` words at rows[r] + at goes to out[64 w + 4 r].
template <class A, std::size_t at, std::size_t words>
[[gnu::always_inline]] inline void transpose_words(RowBytes rows, std::byte* out) noexcept {
  for (std::size_t w = 0; w + 4 <= words; w += 4) {
    for (std::size_t r = 0; r < panel_rows; r += lanes<A>) {
      VI<A> word[4];
      load_words<A>(rows, at + 4 * w, r, word);
      unrolled<4>([&](auto i) {
        word[i].store_unaligned(reinterpret_cast<std::int32_t*>(out + 4 * (panel_rows * (w + i) + r)));
      });
    }
  }
  for (std::size_t w = words / 4 * 4; w < words; ++w)
    copy_units<4>(rows, at + 4 * w, out + 4 * panel_rows * w);
}

}  // namespace mica::kernel::xsimd
