// SPDX-License-Identifier: Apache-2.0
//
// Per target: Q8_0 in vectors (format/q8_0.hpp has the layout).

#if defined(MICA_KERNEL_HIGHWAY_DECODE_Q8_0_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_KERNEL_HIGHWAY_DECODE_Q8_0_INL_HPP
#undef MICA_KERNEL_HIGHWAY_DECODE_Q8_0_INL_HPP
#else
#define MICA_KERNEL_HIGHWAY_DECODE_Q8_0_INL_HPP
#endif

#include "mica/kernel/highway/codec-inl.hpp"

#if MICA_VECTORS
HWY_BEFORE_NAMESPACE();
namespace mica::kernel::highway {
inline namespace MICA_ABI {
namespace HWY_NAMESPACE {

template <>
struct Codec<format::Q8_0> {
  using Block = format::Q8_0::Block;
  static constexpr bool unit_scales = true;

  static HWY_INLINE void unpack(const Block& block, std::uint8_t* HWY_RESTRICT codes) {
    const hn::CappedTag<std::uint8_t, 32> d;
    for (std::size_t i = 0; i < 32; i += hn::MaxLanes(d)) {
      const auto bytes = hn::LoadU(d, reinterpret_cast<const std::uint8_t*>(block.code) + i);
      hn::StoreU(hn::Xor(bytes, hn::Set(d, 128)), d, codes + i);
    }
  }
  static HWY_INLINE void scales(const Block* const* rows, std::size_t n, ChunkScales<format::Q8_0>& out) {
    gather_d(rows, n, out.d);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace MICA_ABI
}  // namespace mica::kernel::highway
HWY_AFTER_NAMESPACE();
#endif  // MICA_VECTORS
#endif
