// SPDX-License-Identifier: Apache-2.0
//
// Per target: NF4 in vectors (format/nf4.hpp has the layout).

#if defined(MICA_KERNEL_HIGHWAY_DECODE_NF4_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_KERNEL_HIGHWAY_DECODE_NF4_INL_HPP
#undef MICA_KERNEL_HIGHWAY_DECODE_NF4_INL_HPP
#else
#define MICA_KERNEL_HIGHWAY_DECODE_NF4_INL_HPP
#endif

#include "mica/kernel/highway/codec-inl.hpp"

#if MICA_VECTORS
HWY_BEFORE_NAMESPACE();
namespace mica::kernel::highway {
inline namespace MICA_ABI {
namespace HWY_NAMESPACE {

/// The levels of sixteen codes.
HWY_INLINE VF levels_of(VI codes) {
  const DF d;
  const float* const levels = format::NF4::levels;
  if constexpr (lanes == 16) {
    return hn::TableLookupLanes(hn::LoadU(d, levels), hn::IndicesFromVec(d, codes));
  } else if constexpr (lanes == 8) {
    const auto indices = hn::IndicesFromVec(d, codes);
    return hn::TwoTablesLookupLanes(d, hn::LoadU(d, levels), hn::LoadU(d, levels + 8), indices);
  } else {
    return hn::GatherIndex(d, levels, codes);
  }
}

/// Values [k, k + lanes) of a row, k a multiple of lanes.
HWY_INLINE VF values_at(const format::NF4::Block* row, std::size_t k) {
  const format::NF4::Block& block = row[k / 32];
  const hn::Rebind<std::uint8_t, DF> d8;
  const VI bytes = hn::PromoteTo(DI(), hn::LoadU(d8, block.nibbles + k % 16));
  const VI codes = hn::And(hn::ShiftRightSame(bytes, k % 32 < 16 ? 0 : 4), hn::Set(DI(), 15));
  return hn::Mul(widen_low(hn::Set(DI(), block.d.bits)), levels_of(codes));
}

}  // namespace HWY_NAMESPACE
}  // namespace MICA_ABI
}  // namespace mica::kernel::highway
HWY_AFTER_NAMESPACE();
#endif  // MICA_VECTORS
#endif
