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

  /// The first eight bytes of a block are two words: d and the high bits of scales, and their low bits. Lanes
  /// are rows.
  static HWY_INLINE void scales(const Block* const* rows, std::size_t, ChunkScales<format::IQ4_XS>& out) {
    const auto at = [rows](std::size_t r) { return reinterpret_cast<const std::int32_t*>(rows[r]); };
    for (std::size_t r = 0; r < panel_rows; r += lanes) {
      VI word[4];
      load_words(at, r, word);
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
      const VI high = hn::ShiftLeft<4>(field(d_and_high, 16 + 2 * g, 3));
      const VI scale = hn::Sub(hn::Or(field(low, 4 * g, 15), high), hn::Set(DI(), 32));
      hn::Store(hn::ConvertTo(DF(), scale), DF(), out.scale[g] + r);
    }
  }
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
