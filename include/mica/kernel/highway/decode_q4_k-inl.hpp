// SPDX-License-Identifier: Apache-2.0
//
// Per target: Q4_K in vectors (format/q4_k.hpp has the layout).

#if defined(MICA_KERNEL_HIGHWAY_DECODE_Q4_K_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_KERNEL_HIGHWAY_DECODE_Q4_K_INL_HPP
#undef MICA_KERNEL_HIGHWAY_DECODE_Q4_K_INL_HPP
#else
#define MICA_KERNEL_HIGHWAY_DECODE_Q4_K_INL_HPP
#endif

#include "mica/kernel/highway/codec-inl.hpp"

#if MICA_VECTORS
HWY_BEFORE_NAMESPACE();
namespace mica::kernel::highway {
inline namespace MICA_ABI {
namespace HWY_NAMESPACE {

template <>
struct Codec<format::Q4_K> {
  using Block = format::Q4_K::Block;
  static constexpr bool unit_scales = false;

  static HWY_INLINE void unpack(const Block& block, std::uint8_t* HWY_RESTRICT codes) {
    const hn::CappedTag<std::uint8_t, 32> d;
    const auto nibble = hn::Set(d, 15);
    if constexpr (hn::MaxLanes(d) == 32) {
      for (std::size_t p = 0; p < 4; ++p) {
        const auto bytes = hn::LoadU(d, block.nibbles + 32 * p);
        store_pair(d, hn::And(bytes, nibble), hn::ShiftRight<4>(bytes), codes + 64 * p);
      }
    } else {
      for (std::size_t i = 0; i < 128; i += 16) {
        const auto bytes = hn::LoadU(d, block.nibbles + i);
        hn::StoreU(hn::And(bytes, nibble), d, codes + i / 32 * 64 + i % 32);
        hn::StoreU(hn::ShiftRight<4>(bytes), d, codes + i / 32 * 64 + i % 32 + 32);
      }
    }
  }

  static HWY_INLINE void scales(const Block* const* rows, std::size_t, ChunkScales<format::Q4_K>& out) {
    six_bit_scales(rows, out);
  }

  static constexpr std::size_t period = 64;
  template <std::size_t i>
  static HWY_INLINE VU8 line(const std::uint8_t* p, std::size_t s) {
    return nibble<(i >= 32)>(packed_word(p, 8 * s + i % 32 / 4));
  }
  static HWY_INLINE void packed_scales(const std::uint8_t* p, std::size_t, ChunkScales<format::Q4_K>& out) {
    packed_six_bit_scales(p, out);
  }

  template <IntegerFormat F>
  static HWY_INLINE void packed_six_bit_scales(const std::uint8_t* p, ChunkScales<F>& out) {
    for (std::size_t r = 0; r < panel_rows; r += lanes) {
      const VI word[4] = {packed_scale_word(p, 0, r), packed_scale_word(p, 1, r), packed_scale_word(p, 2, r),
                          packed_scale_word(p, 3, r)};
      spread_all(word, r, out);
    }
  }

  /// The first 16 bytes of a block, of Q5_K too, are four words: d and dmin, and three of scale bytes. Lanes
  /// are rows.
  template <IntegerFormat F>
  static HWY_INLINE void six_bit_scales(const typename F::Block* const* rows, ChunkScales<F>& out) {
    const auto at = [rows](std::size_t r) { return reinterpret_cast<const std::int32_t*>(rows[r]); };
    for (std::size_t r = 0; r < panel_rows; r += lanes) {
      VI word[4];
      load_words(at, r, word);
      spread_all(word, r, out);
    }
  }

 private:
  template <IntegerFormat F>
  static HWY_INLINE void spread_all(const VI (&word)[4], std::size_t r, ChunkScales<F>& out) {
    hn::Store(widen_low(word[0]), DF(), out.d[0] + r);
    hn::Store(widen_low(hn::ShiftRight<16>(word[0])), DF(), out.dmin[0] + r);
    spread<0>(word, r, out);
    spread<1>(word, r, out);
    spread<2>(word, r, out);
    spread<3>(word, r, out);
  }
  /// Scales and mins g and g + 4.
  template <int g, IntegerFormat F>
  static HWY_INLINE void spread(const VI (&word)[4], std::size_t r, ChunkScales<F>& out) {
    const DF d;
    const VI low = word[1], middle = word[2], high = word[3];
    const VI upper_scale = hn::ShiftLeft<4>(bits<8 * g + 6>(low, 3));
    const VI upper_min = hn::ShiftLeft<4>(bits<8 * g + 6>(middle, 3));
    hn::Store(hn::ConvertTo(d, bits<8 * g>(low, 63)), d, out.scale[g] + r);
    hn::Store(hn::ConvertTo(d, bits<8 * g>(middle, 63)), d, out.min[g] + r);
    hn::Store(hn::ConvertTo(d, hn::Or(bits<8 * g>(high, 15), upper_scale)), d, out.scale[g + 4] + r);
    hn::Store(hn::ConvertTo(d, hn::Or(bits<8 * g + 4>(high, 15), upper_min)), d, out.min[g + 4] + r);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace MICA_ABI
}  // namespace mica::kernel::highway
HWY_AFTER_NAMESPACE();
#endif  // MICA_VECTORS
#endif
