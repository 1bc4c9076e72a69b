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
    for (std::size_t i = 0; i < 128; i += hn::MaxLanes(d)) {
      std::uint8_t* const low = codes + i / 32 * 64 + i % 32;
      const auto bytes = hn::LoadU(d, block.nibbles + i);
      hn::StoreU(hn::And(bytes, hn::Set(d, 15)), d, low);
      hn::StoreU(hn::ShiftRight<4>(bytes), d, low + 32);
    }
  }

  /// The first 16 bytes of a block are four words: d and dmin, and three of scale bytes. Lanes are rows.
  static HWY_INLINE void scales(const Block* const* rows, std::size_t, ChunkScales<format::Q4_K>& out) {
    alignas(64) std::int32_t words[4][panel_rows];
    gather_words(rows, words);
    for (std::size_t r = 0; r < panel_rows; r += lanes) {
      const DI d;
      const VI low = hn::Load(d, words[1] + r), middle = hn::Load(d, words[2] + r), high = hn::Load(d, words[3] + r);
      spread<0>(low, middle, high, r, out);
      spread<1>(low, middle, high, r, out);
      spread<2>(low, middle, high, r, out);
      spread<3>(low, middle, high, r, out);
    }
    Half d[panel_rows], dmin[panel_rows];
    for (std::size_t r = 0; r < panel_rows; ++r) {
      d[r] = {static_cast<std::uint16_t>(words[0][r])};
      dmin[r] = {static_cast<std::uint16_t>(words[0][r] >> 16)};
    }
    widen16(d, out.d[0]);
    widen16(dmin, out.dmin[0]);
  }

 private:
  static HWY_INLINE void gather_words(const Block* const* rows, std::int32_t (&words)[4][panel_rows]) {
    const hn::CappedTag<std::int32_t, 4> d;
    const auto head = [](const Block* block) { return reinterpret_cast<const std::int32_t*>(block); };
    for (std::size_t r = 0; r < panel_rows; r += 4) {
      auto a = hn::LoadU(d, head(rows[r])), b = hn::LoadU(d, head(rows[r + 1]));
      auto c = hn::LoadU(d, head(rows[r + 2])), e = hn::LoadU(d, head(rows[r + 3]));
      transpose4(a, b, c, e);
      hn::Store(a, d, words[0] + r);
      hn::Store(b, d, words[1] + r);
      hn::Store(c, d, words[2] + r);
      hn::Store(e, d, words[3] + r);
    }
  }

  template <int shift>
  static HWY_INLINE VI bits(VI v, std::int32_t mask) {
    return hn::And(hn::BitCast(DI(), hn::ShiftRight<shift>(hn::BitCast(DU(), v))), hn::Set(DI(), mask));
  }
  /// Scales and mins g and g + 4.
  template <int g>
  static HWY_INLINE void spread(VI low, VI middle, VI high, std::size_t r, ChunkScales<format::Q4_K>& out) {
    const DF d;
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
