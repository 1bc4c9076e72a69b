// SPDX-License-Identifier: Apache-2.0
//
// Per target: MXFP4 in vectors (format/mxfp4.hpp has the layout).

#if defined(MICA_KERNEL_HIGHWAY_DECODE_MXFP4_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_KERNEL_HIGHWAY_DECODE_MXFP4_INL_HPP
#undef MICA_KERNEL_HIGHWAY_DECODE_MXFP4_INL_HPP
#else
#define MICA_KERNEL_HIGHWAY_DECODE_MXFP4_INL_HPP
#endif

#include "mica/kernel/highway/codec-inl.hpp"

#if MICA_VECTORS
HWY_BEFORE_NAMESPACE();
namespace mica::kernel::highway {
inline namespace MICA_ABI {
namespace HWY_NAMESPACE {

template <>
struct Codec<format::MXFP4> {
  using Block = format::MXFP4::Block;
  static constexpr bool unit_scales = true;

  static HWY_INLINE void unpack(const Block* blocks, std::size_t n, std::uint8_t* HWY_RESTRICT codes) {
    unpack_nibbles(blocks, n, codes, [](auto d, auto v, std::size_t, std::size_t) HWY_ATTR {
      return hn::TableLookupBytes(hn::LoadDup128(d, offset_fp4), v);
    });
  }
  /// 2^(exponent - 128) from its bits; the two smallest are subnormal.
  static HWY_INLINE void scales(const Block* const* rows, std::size_t n, ChunkScales<format::MXFP4>& out) {
    alignas(64) std::int32_t words[Chunk<format::MXFP4>::blocks][panel_rows];
    gather_words(
        rows, n, [](const Block& block) { return &block.exponent; }, words);
    MICA_UNROLL
    for (std::size_t b = 0; b < n; ++b) {
      for (std::size_t r = 0; r < panel_rows; r += lanes) {
        const VI exponent = bits<0>(hn::Load(DI(), words[b] + r), 255);
        const VI normal = hn::ShiftLeft<23>(hn::Sub(exponent, hn::Set(DI(), 1)));
        const VI subnormal = hn::ShiftLeft<21>(hn::Add(exponent, hn::Set(DI(), 1)));
        const VI scale = hn::IfThenElse(hn::Lt(exponent, hn::Set(DI(), 2)), subnormal, normal);
        hn::Store(hn::BitCast(DF(), scale), DF(), out.d[b] + r);
      }
    }
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace MICA_ABI
}  // namespace mica::kernel::highway
HWY_AFTER_NAMESPACE();
#endif  // MICA_VECTORS
#endif
