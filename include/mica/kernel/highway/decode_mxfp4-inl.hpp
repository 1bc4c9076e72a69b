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
  static HWY_INLINE void scales(const Block* const* rows, std::size_t n, ChunkScales<format::MXFP4>& out) {
    alignas(64) std::int32_t words[Chunk<format::MXFP4>::blocks][panel_rows];
    gather_words(
        rows, n, [](const Block& block) { return &block.exponent; }, words);
    MICA_UNROLL
    for (std::size_t b = 0; b < n; ++b) {
      for (std::size_t r = 0; r < panel_rows; r += lanes) {
        hn::Store(half_power(bits<0>(hn::Load(DI(), words[b] + r), 255)), DF(), out.d[b] + r);
      }
    }
  }

  static constexpr std::size_t period = 32;
  template <std::size_t i>
  static HWY_INLINE VU8 line(const std::uint8_t* p, std::size_t) {
    return hn::TableLookupBytes(hn::LoadDup128(DU8(), offset_fp4),
                                nibble<(i >= 16)>(packed_word(p, i % 16 / 4)));
  }
  static HWY_INLINE void packed_scales(const std::uint8_t* p, std::size_t n,
                                       ChunkScales<format::MXFP4>& out) {
    MICA_UNROLL
    for (std::size_t b = 0; b < n; ++b) {
      for (std::size_t r = 0; r < panel_rows; r += lanes) {
        const auto exponents = hn::LoadU(hn::Rebind<std::uint8_t, DI>(), p + b * panel_rows + r);
        hn::Store(half_power(hn::PromoteTo(DI(), exponents)), DF(), out.d[b] + r);
      }
    }
  }

 private:
  /// 2^(exponent - 128) from its bits; the two smallest are subnormal.
  static HWY_INLINE VF half_power(VI exponent) {
    const VI normal = hn::ShiftLeft<23>(hn::Sub(exponent, hn::Set(DI(), 1)));
    const VI subnormal = hn::ShiftLeft<21>(hn::Add(exponent, hn::Set(DI(), 1)));
    return hn::BitCast(DF(), hn::IfThenElse(hn::Lt(exponent, hn::Set(DI(), 2)), subnormal, normal));
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace MICA_ABI
}  // namespace mica::kernel::highway
HWY_AFTER_NAMESPACE();
#endif  // MICA_VECTORS
#endif
