// SPDX-License-Identifier: Apache-2.0
//
// Per target: IQ3_S in vectors (format/iq3_s.hpp has the layout).

#if defined(MICA_KERNEL_HIGHWAY_DECODE_IQ3_S_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_KERNEL_HIGHWAY_DECODE_IQ3_S_INL_HPP
#undef MICA_KERNEL_HIGHWAY_DECODE_IQ3_S_INL_HPP
#else
#define MICA_KERNEL_HIGHWAY_DECODE_IQ3_S_INL_HPP
#endif

#include "mica/kernel/highway/codebook-inl.hpp"

#if MICA_VECTORS
HWY_BEFORE_NAMESPACE();
namespace mica::kernel::highway {
inline namespace MICA_ABI {
namespace HWY_NAMESPACE {

template <>
struct Codec<format::IQ3_S> {
  using Block = format::IQ3_S::Block;
  static constexpr bool unit_scales = false;

  static HWY_INLINE void unpack(const Block& block, std::uint8_t* HWY_RESTRICT codes) {
    store_entries<format::IQ3_S>(
        block,
        format::codebook::words<std::uint32_t, format::codebook::iq3_s, format::codebook::iq3_s_levels>,
        codes);
  }

  /// The last four bytes of a block are eight scales. Lanes are rows.
  static HWY_INLINE void scales(const Block* const* rows, std::size_t, ChunkScales<format::IQ3_S>& out) {
    const auto at = [rows](std::size_t r) {
      return reinterpret_cast<const std::int32_t*>(rows[r]->scales + 4 - 16);
    };
    for (std::size_t r = 0; r < panel_rows; r += lanes) {
      VI word[4];
      load_words(at, r, word);
      MICA_UNROLL
      for (int g = 0; g < 8; ++g) hn::Store(odd_scale(field(word[3], 4 * g, 15)), DF(), out.scale[g] + r);
    }
    gather_d(rows, 1, out.d);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace MICA_ABI
}  // namespace mica::kernel::highway
HWY_AFTER_NAMESPACE();
#endif  // MICA_VECTORS
#endif
