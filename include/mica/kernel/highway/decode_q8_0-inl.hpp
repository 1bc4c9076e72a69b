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

  static HWY_INLINE void unpack(const Block* blocks, std::size_t n, std::uint8_t* HWY_RESTRICT codes) {
    const hn::CappedTag<std::uint8_t, 32> d;
    const auto from = [blocks, d](std::size_t b, std::size_t i) HWY_ATTR {
      const auto* const code = reinterpret_cast<const std::uint8_t*>(blocks[b].code);
      return hn::Xor(hn::LoadU(d, code + i), hn::Set(d, 128));
    };
    std::size_t b = 0;
    for (; hn::MaxLanes(d) == 32 && b + 1 < n; b += 2)
      store_pair(d, from(b, 0), from(b + 1, 0), codes + 32 * b);
    for (; b < n; ++b) {
      for (std::size_t i = 0; i < 32; i += hn::MaxLanes(d)) hn::StoreU(from(b, i), d, codes + 32 * b + i);
    }
  }
  static HWY_INLINE void scales(const Block* const* rows, std::size_t n, ChunkScales<format::Q8_0>& out) {
    gather_d(rows, n, out.d);
  }

  static constexpr std::size_t period = 32;
  template <std::size_t i>
  static HWY_INLINE VU8 line(const std::uint8_t* p, std::size_t) {
    return hn::Xor(packed_word(p, i / 4), hn::Set(DU8(), 128));
  }
  static HWY_INLINE void packed_scales(const std::uint8_t* p, std::size_t n, ChunkScales<format::Q8_0>& out) {
    packed_d(p, n, out.d);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace MICA_ABI
}  // namespace mica::kernel::highway
HWY_AFTER_NAMESPACE();
#endif  // MICA_VECTORS
#endif
