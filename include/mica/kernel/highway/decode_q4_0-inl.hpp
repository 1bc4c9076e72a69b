// SPDX-License-Identifier: Apache-2.0
//
// Per target: Q4_0 in vectors (format/q4_0.hpp has the layout).

#if defined(MICA_KERNEL_HIGHWAY_DECODE_Q4_0_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_KERNEL_HIGHWAY_DECODE_Q4_0_INL_HPP
#undef MICA_KERNEL_HIGHWAY_DECODE_Q4_0_INL_HPP
#else
#define MICA_KERNEL_HIGHWAY_DECODE_Q4_0_INL_HPP
#endif

#include "mica/kernel/highway/codec-inl.hpp"

#if MICA_VECTORS
HWY_BEFORE_NAMESPACE();
namespace mica::kernel::highway {
inline namespace MICA_ABI {
namespace HWY_NAMESPACE {

template <>
struct Codec<format::Q4_0> {
  using Block = format::Q4_0::Block;
  static constexpr bool unit_scales = true;

  static HWY_INLINE void unpack(const Block& block, std::uint8_t* HWY_RESTRICT codes) {
    const hn::CappedTag<std::uint8_t, 16> d;
    const auto bytes = hn::LoadU(d, block.nibbles);
    hn::StoreU(hn::And(bytes, hn::Set(d, 15)), d, codes);
    hn::StoreU(hn::ShiftRight<4>(bytes), d, codes + 16);
  }
  static HWY_INLINE void scales(const Block* const* rows, std::size_t n, ChunkScales<format::Q4_0>& out) {
    gather_d(rows, n, out.d);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace MICA_ABI
}  // namespace mica::kernel::highway
HWY_AFTER_NAMESPACE();
#endif  // MICA_VECTORS
#endif
