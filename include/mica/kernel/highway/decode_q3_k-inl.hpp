// SPDX-License-Identifier: Apache-2.0
//
// Per target: Q3_K in vectors (format/q3_k.hpp has the layout).

#if defined(MICA_KERNEL_HIGHWAY_DECODE_Q3_K_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_KERNEL_HIGHWAY_DECODE_Q3_K_INL_HPP
#undef MICA_KERNEL_HIGHWAY_DECODE_Q3_K_INL_HPP
#else
#define MICA_KERNEL_HIGHWAY_DECODE_Q3_K_INL_HPP
#endif

#include "mica/kernel/highway/codec-inl.hpp"

#if MICA_VECTORS
HWY_BEFORE_NAMESPACE();
namespace mica::kernel::highway {
inline namespace MICA_ABI {
namespace HWY_NAMESPACE {

template <>
struct Codec<format::Q3_K> {
  using Block = format::Q3_K::Block;
  static constexpr bool unit_scales = false;

  static HWY_INLINE void unpack(const Block& block, std::uint8_t* HWY_RESTRICT codes) {
    unpack_pairs(block.pairs, codes, [&block](auto d, auto v, auto at, std::size_t j) HWY_ATTR {
      constexpr int bit = decltype(at)::value;  // 4 h + c
      const auto high = hn::LoadU(d, block.high + j);
      const auto mask = hn::Set(d, 4);
      if constexpr (bit < 2) {
        return hn::Or(v, hn::And(hn::ShiftLeft<2 - bit>(high), mask));
      } else {
        return hn::Or(v, hn::And(hn::ShiftRight<bit - 2>(high), mask));
      }
    });
  }

  /// Sixteen bytes of a row are four words: two bytes that are none of ours, 12 of scales, and d. Lanes are
  /// rows.
  static HWY_INLINE void scales(const Block* const* rows, std::size_t, ChunkScales<format::Q3_K>& out) {
    const auto at = [rows](std::size_t r) {
      return reinterpret_cast<const std::int32_t*>(rows[r]->scales - 2);
    };
    for (std::size_t r = 0; r < panel_rows; r += lanes) {
      VI word[4];
      load_words(at, r, word);
      hn::Store(widen_low(hn::ShiftRight<16>(word[3])), DF(), out.d[0] + r);
      const VI low[2] = {neighbours(word[0], word[1]), neighbours(word[1], word[2])};
      spread_all(low, neighbours(word[2], word[3]), r, out);
    }
  }

  static constexpr std::size_t period = 128;
  template <std::size_t i>
  static HWY_INLINE VU8 line(const std::uint8_t* p, std::size_t s) {
    const VU high =
        hn::ShiftRightSame(hn::BitCast(DU(), packed_word(p, i % 32 / 4)), static_cast<int>(4 * s));
    return hn::Or(move_bits<2 * (i / 32), 0>(packed_word(p, 8 + 8 * s + i % 32 / 4), 3),
                  move_bits<i / 32, 2>(hn::BitCast(DU8(), high), 4));
  }
  static HWY_INLINE void packed_scales(const std::uint8_t* p, std::size_t, ChunkScales<format::Q3_K>& out) {
    for (std::size_t r = 0; r < panel_rows; r += lanes) {
      const VI low[2] = {packed_scale_word(p, 0, r), packed_scale_word(p, 1, r)};
      spread_all(low, packed_scale_word(p, 2, r), r, out);
    }
    packed_d(p + 12 * panel_rows, 1, out.d);
  }

 private:
  /// The upper half of a, then the lower half of b.
  static HWY_INLINE VI neighbours(VI a, VI b) {
    return hn::Or(hn::BitCast(DI(), hn::ShiftRight<16>(hn::BitCast(DU(), a))), hn::ShiftLeft<16>(b));
  }
  static HWY_INLINE void spread_all(const VI (&low)[2], VI high, std::size_t r,
                                    ChunkScales<format::Q3_K>& out) {
    spread<0>(low, high, r, out);
    spread<1>(low, high, r, out);
    spread<2>(low, high, r, out);
    spread<3>(low, high, r, out);
  }
  /// Scales g, g + 4, g + 8 and g + 12.
  template <int g>
  static HWY_INLINE void spread(const VI (&low)[2], VI high, std::size_t r, ChunkScales<format::Q3_K>& out) {
    store(bits<8 * g>(low[0], 15), bits<8 * g>(high, 3), out.scale[g] + r);
    store(bits<8 * g>(low[1], 15), bits<8 * g + 2>(high, 3), out.scale[g + 4] + r);
    store(bits<8 * g + 4>(low[0], 15), bits<8 * g + 4>(high, 3), out.scale[g + 8] + r);
    store(bits<8 * g + 4>(low[1], 15), bits<8 * g + 6>(high, 3), out.scale[g + 12] + r);
  }
  static HWY_INLINE void store(VI low, VI high, float* out) {
    const VI scale = hn::Sub(hn::Or(low, hn::ShiftLeft<4>(high)), hn::Set(DI(), 32));
    hn::Store(hn::ConvertTo(DF(), scale), DF(), out);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace MICA_ABI
}  // namespace mica::kernel::highway
HWY_AFTER_NAMESPACE();
#endif  // MICA_VECTORS
#endif
