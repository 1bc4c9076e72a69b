// SPDX-License-Identifier: Apache-2.0
//
// Per target: IQ4_NL in vectors (format/iq4_nl.hpp has the layout).

#if defined(MICA_KERNEL_HIGHWAY_DECODE_IQ4_NL_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_KERNEL_HIGHWAY_DECODE_IQ4_NL_INL_HPP
#undef MICA_KERNEL_HIGHWAY_DECODE_IQ4_NL_INL_HPP
#else
#define MICA_KERNEL_HIGHWAY_DECODE_IQ4_NL_INL_HPP
#endif

#include "mica/kernel/highway/codec-inl.hpp"

#if MICA_VECTORS
HWY_BEFORE_NAMESPACE();
namespace mica::kernel::highway {
inline namespace MICA_ABI {
namespace HWY_NAMESPACE {

/// The levels that nibbles stand for, plus code_offset.
template <class D>
HWY_INLINE hn::Vec<D> levels_of(D d, hn::Vec<D> indices) {
  const hn::RebindToSigned<D> ds;
  const auto levels = hn::BitCast(d, hn::LoadDup128(ds, format::IQ4_NL::levels));
  const auto offset = hn::Set(d, static_cast<std::uint8_t>(format::IQ4_NL::code_offset));
  return hn::TableLookupBytes(hn::Add(levels, offset), indices);
}
template <class Block>
HWY_INLINE void unpack_levels(const Block* blocks, std::size_t n, std::uint8_t* HWY_RESTRICT codes) {
  unpack_nibbles(blocks, n, codes,
                 [](auto d, auto v, std::size_t, std::size_t) HWY_ATTR { return levels_of(d, v); });
}

template <>
struct Codec<format::IQ4_NL> {
  using Block = format::IQ4_NL::Block;
  static constexpr bool unit_scales = true;

  static HWY_INLINE void unpack(const Block* blocks, std::size_t n, std::uint8_t* HWY_RESTRICT codes) {
    unpack_levels(blocks, n, codes);
  }
  static HWY_INLINE void scales(const Block* const* rows, std::size_t n, ChunkScales<format::IQ4_NL>& out) {
    gather_d(rows, n, out.d);
  }

  static constexpr std::size_t period = 32;
  template <std::size_t i>
  static HWY_INLINE VU8 line(const std::uint8_t* p, std::size_t) {
    return levels_of(DU8(), nibble<(i >= 16)>(packed_word(p, i % 16 / 4)));
  }
  static HWY_INLINE void packed_scales(const std::uint8_t* p, std::size_t n,
                                       ChunkScales<format::IQ4_NL>& out) {
    packed_d(p, n, out.d);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace MICA_ABI
}  // namespace mica::kernel::highway
HWY_AFTER_NAMESPACE();
#endif  // MICA_VECTORS
#endif
