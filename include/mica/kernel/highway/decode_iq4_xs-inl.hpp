// SPDX-License-Identifier: Apache-2.0
//
// Per target: IQ4_XS in vectors (format/iq4_xs.hpp has the layout).

#if defined(MICA_KERNEL_HIGHWAY_DECODE_IQ4_XS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_KERNEL_HIGHWAY_DECODE_IQ4_XS_INL_HPP
#undef MICA_KERNEL_HIGHWAY_DECODE_IQ4_XS_INL_HPP
#else
#define MICA_KERNEL_HIGHWAY_DECODE_IQ4_XS_INL_HPP
#endif

#include "mica/kernel/highway/codebook-inl.hpp"
#include "mica/kernel/highway/decode_iq4_nl-inl.hpp"

#if MICA_VECTORS
HWY_BEFORE_NAMESPACE();
namespace mica::kernel::highway {
inline namespace MICA_ABI {
namespace HWY_NAMESPACE {

template <>
struct Codec<format::IQ4_XS> {
  using Block = format::IQ4_XS::Block;
  static constexpr bool unit_scales = false;

  static HWY_INLINE void unpack(const Block& block, std::uint8_t* HWY_RESTRICT codes) {
    unpack_levels(reinterpret_cast<const Group*>(block.nibbles), 8, codes);
  }

  /// The first eight bytes of a block are two words: d and the high bits of scales, and their low bits. Lanes are rows.
  static HWY_INLINE void scales(const Block* const* rows, std::size_t, ChunkScales<format::IQ4_XS>& out) {
    const auto at = [rows](std::size_t r) { return reinterpret_cast<const std::int32_t*>(rows[r]); };
    for (std::size_t r = 0; r < panel_rows; r += lanes) {
      VI word[4];
      load_words(at, r, word);
      hn::Store(widen_low(word[0]), DF(), out.d[0] + r);
      MICA_UNROLL
      for (int g = 0; g < 8; ++g) {
        const VI high = hn::ShiftLeft<4>(field(word[0], 16 + 2 * g, 3));
        const VI scale = hn::Sub(hn::Or(field(word[1], 4 * g, 15), high), hn::Set(DI(), 32));
        hn::Store(hn::ConvertTo(DF(), scale), DF(), out.scale[g] + r);
      }
    }
  }

 private:
  struct Group {
    std::uint8_t nibbles[16];
  };
};

}  // namespace HWY_NAMESPACE
}  // namespace MICA_ABI
}  // namespace mica::kernel::highway
HWY_AFTER_NAMESPACE();
#endif  // MICA_VECTORS
#endif
