// SPDX-License-Identifier: Apache-2.0
//
// Per target: Q6_K in vectors (format/q6_k.hpp has the layout).

#if defined(MICA_KERNEL_HIGHWAY_DECODE_Q6_K_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_KERNEL_HIGHWAY_DECODE_Q6_K_INL_HPP
#undef MICA_KERNEL_HIGHWAY_DECODE_Q6_K_INL_HPP
#else
#define MICA_KERNEL_HIGHWAY_DECODE_Q6_K_INL_HPP
#endif

#include "mica/kernel/highway/codec-inl.hpp"

#if MICA_VECTORS
HWY_BEFORE_NAMESPACE();
namespace mica::kernel::highway {
inline namespace MICA_ABI {
namespace HWY_NAMESPACE {

template <>
struct Codec<format::Q6_K> {
  using Block = format::Q6_K::Block;
  static constexpr bool unit_scales = false;

  static HWY_INLINE void unpack(const Block& block, std::uint8_t* HWY_RESTRICT codes) {
    const hn::CappedTag<std::uint8_t, 32> d;
    for (std::size_t half = 0; half < 2; ++half) {
      for (std::size_t j = 0; j < 32; j += hn::MaxLanes(d)) {
        const auto first = hn::LoadU(d, block.low + 64 * half + j);
        const auto second = hn::LoadU(d, block.low + 64 * half + 32 + j);
        const auto high = hn::LoadU(d, block.high + 32 * half + j);
        const auto nibble = hn::Set(d, 15), pair = hn::Set(d, 0x30);
        std::uint8_t* const out = codes + 128 * half + j;
        const auto c0 = hn::Or(hn::And(first, nibble), hn::And(hn::ShiftLeft<4>(high), pair));
        const auto c1 = hn::Or(hn::And(second, nibble), hn::And(hn::ShiftLeft<2>(high), pair));
        const auto c2 = hn::Or(hn::ShiftRight<4>(first), hn::And(high, pair));
        const auto c3 = hn::Or(hn::ShiftRight<4>(second), hn::And(hn::ShiftRight<2>(high), pair));
        if constexpr (hn::MaxLanes(d) == 32) {
          store_pair(d, c0, c1, out);
          store_pair(d, c2, c3, out + 64);
        } else {
          hn::StoreU(c0, d, out);
          hn::StoreU(c1, d, out + 32);
          hn::StoreU(c2, d, out + 64);
          hn::StoreU(c3, d, out + 96);
        }
      }
    }
  }

  /// Sixteen bytes of a row are four words, that is four groups each. Lanes are rows.
  static HWY_INLINE void scales(const Block* const* rows, std::size_t, ChunkScales<format::Q6_K>& out) {
    const auto at = [rows](std::size_t r) { return reinterpret_cast<const std::int32_t*>(rows[r]->scales); };
    for (std::size_t r = 0; r < panel_rows; r += lanes) {
      VI word[4];
      load_words(at, r, word);
      MICA_UNROLL
      for (std::size_t i = 0; i < 4; ++i) spread(word[i], i, r, out);
    }
    gather_d(rows, 1, out.d);
  }

  static constexpr std::size_t period = 128;
  template <std::size_t i>
  static HWY_INLINE VU8 line(const std::uint8_t* p, std::size_t s) {
    return hn::Or(nibble<(i >= 64)>(packed_word(p, 16 * s + i % 64 / 4)),
                  move_bits<2 * (i / 32), 4>(packed_word(p, 32 + 8 * s + i % 32 / 4), 0x30));
  }
  static HWY_INLINE void packed_scales(const std::uint8_t* p, std::size_t, ChunkScales<format::Q6_K>& out) {
    for (std::size_t r = 0; r < panel_rows; r += lanes) {
      MICA_UNROLL
      for (std::size_t i = 0; i < 4; ++i) spread(packed_scale_word(p, i, r), i, r, out);
    }
    packed_d(p + 16 * panel_rows, 1, out.d);
  }

 private:
  /// The scales of groups 4 i .. 4 i + 3.
  static HWY_INLINE void spread(VI word, std::size_t i, std::size_t r, ChunkScales<format::Q6_K>& out) {
    const DF d;
    hn::Store(top_byte(hn::ShiftLeft<24>(word)), d, out.scale[4 * i] + r);
    hn::Store(top_byte(hn::ShiftLeft<16>(word)), d, out.scale[4 * i + 1] + r);
    hn::Store(top_byte(hn::ShiftLeft<8>(word)), d, out.scale[4 * i + 2] + r);
    hn::Store(top_byte(word), d, out.scale[4 * i + 3] + r);
  }
  static HWY_INLINE VF top_byte(VI v) { return hn::ConvertTo(DF(), hn::ShiftRight<24>(v)); }
};

}  // namespace HWY_NAMESPACE
}  // namespace MICA_ABI
}  // namespace mica::kernel::highway
HWY_AFTER_NAMESPACE();
#endif  // MICA_VECTORS
#endif
