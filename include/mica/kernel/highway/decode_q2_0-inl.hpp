// SPDX-License-Identifier: Apache-2.0
//
// Per target: Q2_0 in vectors (format/q2_0.hpp has the layout).

#if defined(MICA_KERNEL_HIGHWAY_DECODE_Q2_0_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_KERNEL_HIGHWAY_DECODE_Q2_0_INL_HPP
#undef MICA_KERNEL_HIGHWAY_DECODE_Q2_0_INL_HPP
#else
#define MICA_KERNEL_HIGHWAY_DECODE_Q2_0_INL_HPP
#endif

#include "mica/kernel/highway/codec-inl.hpp"

#if MICA_VECTORS
HWY_BEFORE_NAMESPACE();
namespace mica::kernel::highway {
inline namespace MICA_ABI {
namespace HWY_NAMESPACE {

template <>
struct Codec<format::Q2_0> {
  using Block = format::Q2_0::Block;
  static constexpr bool unit_scales = true;

  /// A byte b becomes the word b | b << 6 | b << 12 | b << 18, which has a code at the foot of every byte.
  static HWY_INLINE void unpack(const Block* blocks, std::size_t n, std::uint8_t* HWY_RESTRICT codes) {
    const hn::Rebind<std::uint8_t, DU> d;
    for (std::size_t i = 0; i < 16 * n; i += lanes) {
      auto words = hn::PromoteTo(DU(), hn::LoadU(d, blocks[i / 16].pairs + i % 16));
      words = hn::Or(words, hn::ShiftLeft<6>(words));
      words = hn::And(hn::Or(words, hn::ShiftLeft<12>(words)), hn::Set(DU(), 0x03030303));
      hn::StoreU(hn::BitCast(DU8(), words), DU8(), codes + 4 * i);
    }
  }
  static HWY_INLINE void scales(const Block* const* rows, std::size_t n, ChunkScales<format::Q2_0>& out) {
    gather_d(rows, n, out.d);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace MICA_ABI
}  // namespace mica::kernel::highway
HWY_AFTER_NAMESPACE();
#endif  // MICA_VECTORS
#endif
