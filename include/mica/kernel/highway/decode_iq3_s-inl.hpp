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
    constexpr auto& words =
        format::codebook::words<std::uint32_t, format::codebook::iq3_s, format::codebook::iq3_s_levels>;
    MICA_UNROLL
    for (std::size_t q = 0; q < 4; ++q) {
      const auto word = [&](std::size_t j) { return words[format::IQ3_S::entry(block, 16 * q + j)]; };
      std::uint64_t signs;
      hwy::CopyBytes<8>(block.signs + 8 * q, &signs);
      store_signed<std::uint32_t, format::IQ3_S::code_offset>(word, signs, codes + 64 * q);
    }
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
