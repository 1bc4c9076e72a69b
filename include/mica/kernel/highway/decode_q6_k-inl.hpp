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
        hn::StoreU(hn::Or(hn::And(first, nibble), hn::And(hn::ShiftLeft<4>(high), pair)), d, out);
        hn::StoreU(hn::Or(hn::And(second, nibble), hn::And(hn::ShiftLeft<2>(high), pair)), d, out + 32);
        hn::StoreU(hn::Or(hn::ShiftRight<4>(first), hn::And(high, pair)), d, out + 64);
        hn::StoreU(hn::Or(hn::ShiftRight<4>(second), hn::And(hn::ShiftRight<2>(high), pair)), d, out + 96);
      }
    }
  }

  /// Sixteen bytes of a row are four words, that is four groups each. Lanes are rows.
  static HWY_INLINE void scales(const Block* const* rows, std::size_t, ChunkScales<format::Q6_K>& out) {
    alignas(64) std::int32_t words[4][panel_rows];
    const hn::CappedTag<std::int32_t, 4> d4;
    const auto at = [](const Block* block) { return reinterpret_cast<const std::int32_t*>(block->scales); };
    for (std::size_t r = 0; r < panel_rows; r += 4) {
      auto a = hn::LoadU(d4, at(rows[r])), b = hn::LoadU(d4, at(rows[r + 1]));
      auto c = hn::LoadU(d4, at(rows[r + 2])), e = hn::LoadU(d4, at(rows[r + 3]));
      transpose4(a, b, c, e);
      hn::Store(a, d4, words[0] + r);
      hn::Store(b, d4, words[1] + r);
      hn::Store(c, d4, words[2] + r);
      hn::Store(e, d4, words[3] + r);
    }
    const DF d;
    for (std::size_t word = 0; word < 4; ++word) {
      for (std::size_t r = 0; r < panel_rows; r += lanes) {
        const VI four = hn::Load(DI(), words[word] + r);
        const auto byte = [&](VI top) HWY_ATTR { return hn::ConvertTo(d, hn::ShiftRight<24>(top)); };
        hn::Store(byte(hn::ShiftLeft<24>(four)), d, out.scale[4 * word] + r);
        hn::Store(byte(hn::ShiftLeft<16>(four)), d, out.scale[4 * word + 1] + r);
        hn::Store(byte(hn::ShiftLeft<8>(four)), d, out.scale[4 * word + 2] + r);
        hn::Store(byte(four), d, out.scale[4 * word + 3] + r);
      }
    }
    gather_d(rows, 1, out.d);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace MICA_ABI
}  // namespace mica::kernel::highway
HWY_AFTER_NAMESPACE();
#endif  // MICA_VECTORS
#endif
