// SPDX-License-Identifier: Apache-2.0
//
// Per target: Q5_1 in vectors (format/q5_1.hpp has the layout).

#if defined(MICA_KERNEL_HIGHWAY_DECODE_Q5_1_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_KERNEL_HIGHWAY_DECODE_Q5_1_INL_HPP
#undef MICA_KERNEL_HIGHWAY_DECODE_Q5_1_INL_HPP
#else
#define MICA_KERNEL_HIGHWAY_DECODE_Q5_1_INL_HPP
#endif

#include "mica/kernel/highway/codec-inl.hpp"

#if MICA_VECTORS
HWY_BEFORE_NAMESPACE();
namespace mica::kernel::highway {
inline namespace MICA_ABI {
namespace HWY_NAMESPACE {

template <>
struct Codec<format::Q5_1> {
  using Block = format::Q5_1::Block;
  static constexpr bool unit_scales = true;

  static HWY_INLINE void unpack(const Block* blocks, std::size_t n, std::uint8_t* HWY_RESTRICT codes) {
    unpack_nibbles(blocks, n, codes, [blocks](auto d, auto v, std::size_t b, std::size_t i) HWY_ATTR {
      return hn::Or(v, fifth_bits(d, blocks + b, i));
    });
  }
  static HWY_INLINE void scales(const Block* const* rows, std::size_t n, ChunkScales<format::Q5_1>& out) {
    gather_d_and_m(rows, n, out);
  }

  static constexpr std::size_t period = 32;
  template <std::size_t i>
  static HWY_INLINE VU8 line(const std::uint8_t* p, std::size_t) {
    return hn::Or(nibble<(i >= 16)>(packed_word(p, 1 + i % 16 / 4)),
                  move_bits<i / 4, 4>(packed_word(p, 0), 16));
  }
  static HWY_INLINE void packed_scales(const std::uint8_t* p, std::size_t n, ChunkScales<format::Q5_1>& out) {
    packed_d_and_m(p, n, out);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace MICA_ABI
}  // namespace mica::kernel::highway
HWY_AFTER_NAMESPACE();
#endif  // MICA_VECTORS
#endif
