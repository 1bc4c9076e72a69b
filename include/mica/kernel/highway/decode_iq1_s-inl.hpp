// SPDX-License-Identifier: Apache-2.0
//
// Per target: IQ1_S in vectors (format/iq1_s.hpp has the layout).

#if defined(MICA_KERNEL_HIGHWAY_DECODE_IQ1_S_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_KERNEL_HIGHWAY_DECODE_IQ1_S_INL_HPP
#undef MICA_KERNEL_HIGHWAY_DECODE_IQ1_S_INL_HPP
#else
#define MICA_KERNEL_HIGHWAY_DECODE_IQ1_S_INL_HPP
#endif

#include "mica/kernel/highway/codebook-inl.hpp"

#if MICA_VECTORS
HWY_BEFORE_NAMESPACE();
namespace mica::kernel::highway {
inline namespace MICA_ABI {
namespace HWY_NAMESPACE {

/// 256 codes + 9 of IQ1: bytes out of words of the codebook, already shifted.
template <class Word>
HWY_INLINE void store_shifted(const Word& word, std::uint8_t* HWY_RESTRICT codes) {
  const hn::Repartition<std::uint64_t, DU8> d;
  MICA_UNROLL
  for (std::size_t i = 0; i < 256; i += 4 * lanes)
    hn::StoreU(hn::BitCast(DU8(), words_from(d, word, i / 8)), DU8(), codes + i);
}

/// Entry n of the codebook with a shift up, or with a shift down: 8 number + 9 + 1 or 8 number + 9 - 1.
HWY_INLINE std::uint64_t shifted_word(unsigned n, unsigned down) {
  constexpr auto& words =
      format::codebook::words<std::uint64_t, format::codebook::iq1, format::codebook::iq1_lifted>;
  static constexpr std::uint64_t up[2] = {0x0202020202020202u, 0};
  return words[n] + up[down];
}

template <>
struct Codec<format::IQ1_S> {
  using Block = format::IQ1_S::Block;
  static constexpr bool unit_scales = false;

  static HWY_INLINE void unpack(const Block& block, std::uint8_t* HWY_RESTRICT codes) {
    const auto word = [&](std::size_t j) {
      return shifted_word(format::IQ1_S::entry(block, j), block.high[j / 4] >> 15);
    };
    store_shifted(word, codes);
  }

  /// The last 16 bytes of a block are four words, that is scales of two groups each. Lanes are rows.
  static HWY_INLINE void scales(const Block* const* rows, std::size_t, ChunkScales<format::IQ1_S>& out) {
    const auto at = [rows](std::size_t r) { return reinterpret_cast<const std::int32_t*>(rows[r]->high); };
    for (std::size_t r = 0; r < panel_rows; r += lanes) {
      VI word[4];
      load_words(at, r, word);
      MICA_UNROLL
      for (std::size_t i = 0; i < 4; ++i) {
        hn::Store(odd_scale(field(word[i], 12, 7)), DF(), out.scale[2 * i] + r);
        hn::Store(odd_scale(field(word[i], 28, 7)), DF(), out.scale[2 * i + 1] + r);
      }
    }
    gather_scaled_d(rows, 0.125f, out.d);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace MICA_ABI
}  // namespace mica::kernel::highway
HWY_AFTER_NAMESPACE();
#endif  // MICA_VECTORS
#endif
