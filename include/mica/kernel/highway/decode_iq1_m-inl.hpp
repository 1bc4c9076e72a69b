// SPDX-License-Identifier: Apache-2.0
//
// Per target: IQ1_M in vectors (format/iq1_m.hpp has the layout).

#if defined(MICA_KERNEL_HIGHWAY_DECODE_IQ1_M_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_KERNEL_HIGHWAY_DECODE_IQ1_M_INL_HPP
#undef MICA_KERNEL_HIGHWAY_DECODE_IQ1_M_INL_HPP
#else
#define MICA_KERNEL_HIGHWAY_DECODE_IQ1_M_INL_HPP
#endif

#include "mica/kernel/highway/decode_iq1_s-inl.hpp"

#if MICA_VECTORS
HWY_BEFORE_NAMESPACE();
namespace mica::kernel::highway {
inline namespace MICA_ABI {
namespace HWY_NAMESPACE {

template <>
struct Codec<format::IQ1_M> {
  using Block = format::IQ1_M::Block;
  static constexpr bool unit_scales = false;

  static HWY_INLINE void unpack(const Block& block, std::uint8_t* HWY_RESTRICT codes) {
    const auto word = [&](std::size_t j) {
      const unsigned entry = format::IQ1_M::shifted_entry(block, j);
      return shifted_word(entry & 2047, entry >> 11);
    };
    store_shifted(word, codes);
  }

  /// The last eight bytes of a block are two words: eight scales each, and half of the bits of d. Lanes are
  /// rows.
  static HWY_INLINE void scales(const Block* const* rows, std::size_t, ChunkScales<format::IQ1_M>& out) {
    const auto at = [rows](std::size_t r) {
      return reinterpret_cast<const std::int32_t*>(rows[r]->high + 8);
    };
    for (std::size_t r = 0; r < panel_rows; r += lanes) {
      VI word[4];
      load_words(at, r, word);
      const VI low = word[2], high = word[3];
      MICA_UNROLL
      for (int i = 0; i < 8; ++i) {
        const int shift = i / 4 * 16 + i % 4 * 3;
        hn::Store(odd_scale(field(low, shift, 7)), DF(), out.scale[i] + r);
        hn::Store(odd_scale(field(high, shift, 7)), DF(), out.scale[8 + i] + r);
      }
      const VI d = hn::Or(hn::Or(field(low, 12, 0x000F), field(low, 24, 0x00F0)),
                          hn::Or(field(high, 4, 0x0F00), field(high, 16, 0xF000)));
      hn::Store(hn::Mul(widen_low(d), hn::Set(DF(), 0.125f)), DF(), out.d[0] + r);
    }
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace MICA_ABI
}  // namespace mica::kernel::highway
HWY_AFTER_NAMESPACE();
#endif  // MICA_VECTORS
#endif
