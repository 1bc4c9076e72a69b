// SPDX-License-Identifier: Apache-2.0
//
// Per target: what the codecs of formats with codebooks share. Words of a codebook are gathered by plain
// loads, since machines' own gathers are slow or absent, and meet in a register, since stores of words that
// are loaded as vectors stall. Loops over a block are rolled where an entry is one load: unrolled, compilers
// load all entries ahead and spill them.

#if defined(MICA_KERNEL_HIGHWAY_CODEBOOK_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_KERNEL_HIGHWAY_CODEBOOK_INL_HPP
#undef MICA_KERNEL_HIGHWAY_CODEBOOK_INL_HPP
#else
#define MICA_KERNEL_HIGHWAY_CODEBOOK_INL_HPP
#endif

#include "mica/kernel/highway/codec-inl.hpp"

#if MICA_VECTORS
HWY_BEFORE_NAMESPACE();
namespace mica::kernel::highway {
inline namespace MICA_ABI {
namespace HWY_NAMESPACE {

/// A vector of the words word(first), word(first + 1) and so on, of eight or four bytes.
template <class D, class Word>
HWY_INLINE hn::Vec<D> words_from(D d, const Word& word, std::size_t first) {
  constexpr std::size_t n = hn::MaxLanes(D());
  if constexpr (n * sizeof(hn::TFromD<D>) > 16) {
    const hn::Half<D> half;
    return hn::Combine(d, words_from(half, word, first + n / 2), words_from(half, word, first));
  } else if constexpr (n == 2) {
    return hn::Dup128VecFromValues(d, word(first), word(first + 1));
  } else {
    return hn::Dup128VecFromValues(d, word(first), word(first + 1), word(first + 2), word(first + 3));
  }
}

/// 64 codes + offset: bytes out of words, negative where the bits of `signs` are set.
template <class WordType, int offset, class Word>
HWY_INLINE void store_signed(const Word& word, std::uint64_t signs, std::uint8_t* HWY_RESTRICT codes) {
  const DU8 d;
  const hn::Repartition<WordType, DU8> dw;
  const auto zero = hn::Set(d, static_cast<std::uint8_t>(offset));
  const std::uint64_t padded[2] = {signs, 0};  // eight bytes can be read at any of the first eight
  const auto* const bits = reinterpret_cast<const std::uint8_t*>(padded);
  MICA_UNROLL
  for (std::size_t i = 0; i < 64; i += 4 * lanes) {
    const VU8 level = hn::BitCast(d, words_from(dw, word, i / sizeof(WordType)));
    const auto negative = hn::LoadMaskBits(d, bits + i / 8);
    hn::StoreU(hn::IfThenElse(negative, hn::Sub(zero, level), hn::Add(zero, level)), d, codes + i);
  }
}

/// 256 codes + offset of a block whose signs lie apart from its entries: F::entry(block, i) numbers the words
/// of a codebook.
template <class F, class WordType, std::size_t n>
HWY_INLINE void store_entries(const typename F::Block& block, const std::array<WordType, n>& words,
                              std::uint8_t* HWY_RESTRICT codes) {
  constexpr std::size_t count = 64 / sizeof(WordType);
  MICA_UNROLL
  for (std::size_t q = 0; q < 4; ++q) {
    const auto word = [&](std::size_t j) { return words[F::entry(block, count * q + j)]; };
    std::uint64_t signs;
    hwy::CopyBytes<8>(block.signs + 8 * q, &signs);
    store_signed<WordType, F::code_offset>(word, signs, codes + 64 * q);
  }
}

/// Eight times seven signs become eight times eight, an even number of them set.
HWY_INLINE std::uint64_t even_signs(std::uint64_t signs) {
  std::uint64_t parity = signs ^ (signs >> 4);
  parity ^= parity >> 2;
  parity ^= parity >> 1;
  return signs | (parity & 0x0101010101010101u) << 7;
}

/// Twice four times seven signs, from the lowest bit, as eight times eight.
HWY_INLINE std::uint64_t spread_signs(std::uint32_t low, std::uint32_t high) {
  const auto spread = [](std::uint32_t bits) -> std::uint64_t {
    return (bits & 0x7F) | (bits & 0x3F80) << 1 | (bits & 0x1FC000) << 2 | (bits & 0xFE00000) << 3;
  };
  return even_signs(spread(low) | spread(high) << 32);
}

/// What `mask` leaves of every lane, shifted down.
HWY_INLINE VI field(VI v, int shift, std::int32_t mask) {
  return hn::And(hn::BitCast(DI(), hn::ShiftRightSame(hn::BitCast(DU(), v), shift)), hn::Set(DI(), mask));
}

/// 2 s + 1.
HWY_INLINE VF odd_scale(VI s) { return hn::ConvertTo(DF(), hn::Add(hn::Add(s, s), hn::Set(DI(), 1))); }

/// The field d of a block of 16 rows, times `factor`, a power of two.
template <class Block>
HWY_INLINE void gather_scaled_d(const Block* const* rows, float factor, float (&out)[1][panel_rows]) {
  gather_d(rows, 1, out);
  for (std::size_t r = 0; r < panel_rows; r += lanes) {
    hn::Store(hn::Mul(hn::Load(DF(), out[0] + r), hn::Set(DF(), factor)), DF(), out[0] + r);
  }
}

/// Sixteen four-bit scales in the last eight bytes before end(row), as 2 s + 1.
template <class End>
HWY_INLINE void odd_nibble_scales(const End& end, float (&out)[16][panel_rows]) {
  const auto at = [&end](std::size_t r) { return reinterpret_cast<const std::int32_t*>(end(r) - 16); };
  for (std::size_t r = 0; r < panel_rows; r += lanes) {
    VI word[4];
    load_words(at, r, word);
    MICA_UNROLL
    for (int k = 0; k < 8; ++k) {
      hn::Store(odd_scale(field(word[2], 4 * k, 15)), DF(), out[k] + r);
      hn::Store(odd_scale(field(word[3], 4 * k, 15)), DF(), out[8 + k] + r);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace MICA_ABI
}  // namespace mica::kernel::highway
HWY_AFTER_NAMESPACE();
#endif  // MICA_VECTORS
#endif
