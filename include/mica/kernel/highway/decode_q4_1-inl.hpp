// SPDX-License-Identifier: Apache-2.0
//
// Per target: Q4_1 in vectors (format/q4_1.hpp has the layout).

#if defined(MICA_KERNEL_HIGHWAY_DECODE_Q4_1_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_KERNEL_HIGHWAY_DECODE_Q4_1_INL_HPP
#undef MICA_KERNEL_HIGHWAY_DECODE_Q4_1_INL_HPP
#else
#define MICA_KERNEL_HIGHWAY_DECODE_Q4_1_INL_HPP
#endif

#include "mica/kernel/highway/codec-inl.hpp"

#if MICA_VECTORS
HWY_BEFORE_NAMESPACE();
namespace mica::kernel::highway {
inline namespace MICA_ABI {
namespace HWY_NAMESPACE {

template <>
struct Codec<format::Q4_1> {
  using Block = format::Q4_1::Block;
  static constexpr bool unit_scales = true;

  static HWY_INLINE void unpack(const Block* blocks, std::size_t n, std::uint8_t* HWY_RESTRICT codes) {
    unpack_nibbles(blocks, n, codes, [](auto, auto v, std::size_t, std::size_t) HWY_ATTR { return v; });
  }
  static HWY_INLINE void scales(const Block* const* rows, std::size_t n, ChunkScales<format::Q4_1>& out) {
    gather_d_and_m(rows, n, out);
  }

  static constexpr std::size_t period = 32;
  template <std::size_t i>
  static HWY_INLINE VU8 line(const std::uint8_t* p, std::size_t) {
    return nibble<(i >= 16)>(packed_word(p, i % 16 / 4));
  }
  static HWY_INLINE void packed_scales(const std::uint8_t* p, std::size_t n, ChunkScales<format::Q4_1>& out) {
    packed_d_and_m(p, n, out);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace MICA_ABI
}  // namespace mica::kernel::highway
HWY_AFTER_NAMESPACE();
#endif  // MICA_VECTORS
#endif
