// SPDX-License-Identifier: Apache-2.0
//
// Per target: IQ2_S in vectors (format/iq2_s.hpp has the layout).

#if defined(MICA_KERNEL_HIGHWAY_DECODE_IQ2_S_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_KERNEL_HIGHWAY_DECODE_IQ2_S_INL_HPP
#undef MICA_KERNEL_HIGHWAY_DECODE_IQ2_S_INL_HPP
#else
#define MICA_KERNEL_HIGHWAY_DECODE_IQ2_S_INL_HPP
#endif

#include "mica/kernel/highway/codebook-inl.hpp"

#if MICA_VECTORS
HWY_BEFORE_NAMESPACE();
namespace mica::kernel::highway {
inline namespace MICA_ABI {
namespace HWY_NAMESPACE {

template <>
struct Codec<format::IQ2_S> {
  using Block = format::IQ2_S::Block;
  static constexpr bool unit_scales = false;

  static HWY_INLINE void unpack(const Block& block, std::uint8_t* HWY_RESTRICT codes) {
    store_entries<format::IQ2_S>(
        block, format::codebook::words<std::uint64_t, format::codebook::iq2_s, format::codebook::iq2_levels>,
        codes);
  }

  static HWY_INLINE void scales(const Block* const* rows, std::size_t, ChunkScales<format::IQ2_S>& out) {
    odd_nibble_scales([rows](std::size_t r) { return rows[r]->scales + 8; }, out.scale);
    gather_scaled_d(rows, 0.125f, out.d);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace MICA_ABI
}  // namespace mica::kernel::highway
HWY_AFTER_NAMESPACE();
#endif  // MICA_VECTORS
#endif
