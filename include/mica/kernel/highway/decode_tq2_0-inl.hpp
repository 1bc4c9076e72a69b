// SPDX-License-Identifier: Apache-2.0
//
// Per target: TQ2_0 in vectors (format/tq2_0.hpp has the layout).

#if defined(MICA_KERNEL_HIGHWAY_DECODE_TQ2_0_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_KERNEL_HIGHWAY_DECODE_TQ2_0_INL_HPP
#undef MICA_KERNEL_HIGHWAY_DECODE_TQ2_0_INL_HPP
#else
#define MICA_KERNEL_HIGHWAY_DECODE_TQ2_0_INL_HPP
#endif

#include "mica/kernel/highway/codec-inl.hpp"

#if MICA_VECTORS
HWY_BEFORE_NAMESPACE();
namespace mica::kernel::highway {
inline namespace MICA_ABI {
namespace HWY_NAMESPACE {

template <>
struct Codec<format::TQ2_0> {
  using Block = format::TQ2_0::Block;
  static constexpr bool unit_scales = true;

  static HWY_INLINE void unpack(const Block& block, std::uint8_t* HWY_RESTRICT codes) {
    unpack_pairs(block.pairs, codes, [](auto, auto v, auto, std::size_t) HWY_ATTR { return v; });
  }
  static HWY_INLINE void scales(const Block* const* rows, std::size_t, ChunkScales<format::TQ2_0>& out) {
    gather_d(rows, 1, out.d);
  }

  static constexpr std::size_t period = 128;
  template <std::size_t i>
  static HWY_INLINE VU8 line(const std::uint8_t* p, std::size_t s) {
    return move_bits<2 * (i / 32), 0>(packed_word(p, 8 * s + i % 32 / 4), 3);
  }
  static HWY_INLINE void packed_scales(const std::uint8_t* p, std::size_t n,
                                       ChunkScales<format::TQ2_0>& out) {
    packed_d(p, n, out.d);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace MICA_ABI
}  // namespace mica::kernel::highway
HWY_AFTER_NAMESPACE();
#endif  // MICA_VECTORS
#endif
