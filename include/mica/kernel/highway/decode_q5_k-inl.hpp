// SPDX-License-Identifier: Apache-2.0
//
// Per target: Q5_K in vectors (format/q5_k.hpp has the layout).

#if defined(MICA_KERNEL_HIGHWAY_DECODE_Q5_K_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_KERNEL_HIGHWAY_DECODE_Q5_K_INL_HPP
#undef MICA_KERNEL_HIGHWAY_DECODE_Q5_K_INL_HPP
#else
#define MICA_KERNEL_HIGHWAY_DECODE_Q5_K_INL_HPP
#endif

#include "mica/kernel/highway/decode_q4_k-inl.hpp"

#if MICA_VECTORS
HWY_BEFORE_NAMESPACE();
namespace mica::kernel::highway {
inline namespace MICA_ABI {
namespace HWY_NAMESPACE {

template <>
struct Codec<format::Q5_K> {
  using Block = format::Q5_K::Block;
  static constexpr bool unit_scales = false;

  static HWY_INLINE void unpack(const Block& block, std::uint8_t* HWY_RESTRICT codes) {
    const hn::CappedTag<std::uint8_t, 32> d;
    const auto nibble = hn::Set(d, 15), fifth = hn::Set(d, 16);
    for (std::size_t j = 0; j < 32; j += hn::MaxLanes(d)) {
      auto high = hn::LoadU(d, block.high + j);
      for (std::size_t p = 0; p < 4; ++p) {
        const auto bytes = hn::LoadU(d, block.nibbles + 32 * p + j);
        const auto even = hn::Or(hn::And(bytes, nibble), hn::And(hn::ShiftLeft<4>(high), fifth));
        const auto odd = hn::Or(hn::ShiftRight<4>(bytes), hn::And(hn::ShiftLeft<3>(high), fifth));
        store_columns(d, even, odd, codes + 64 * p + j);
        high = hn::ShiftRight<2>(high);
      }
    }
  }
  static HWY_INLINE void scales(const Block* const* rows, std::size_t, ChunkScales<format::Q5_K>& out) {
    Codec<format::Q4_K>::six_bit_scales(rows, out);
  }

  static constexpr std::size_t period = 64;
  template <std::size_t i>
  static HWY_INLINE VU8 line(const std::uint8_t* p, std::size_t s) {
    const VU high =
        hn::ShiftRightSame(hn::BitCast(DU(), packed_word(p, i % 32 / 4)), static_cast<int>(2 * s));
    return hn::Or(nibble<(i >= 32)>(packed_word(p, 8 + 8 * s + i % 32 / 4)),
                  move_bits<(i >= 32 ? 1 : 0), 4>(hn::BitCast(DU8(), high), 16));
  }
  static HWY_INLINE void packed_scales(const std::uint8_t* p, std::size_t, ChunkScales<format::Q5_K>& out) {
    Codec<format::Q4_K>::packed_six_bit_scales(p, out);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace MICA_ABI
}  // namespace mica::kernel::highway
HWY_AFTER_NAMESPACE();
#endif  // MICA_VECTORS
#endif
