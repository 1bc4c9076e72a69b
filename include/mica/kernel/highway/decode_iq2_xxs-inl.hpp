// SPDX-License-Identifier: Apache-2.0
//
// Per target: IQ2_XXS in vectors (format/iq2_xxs.hpp has the layout).

#if defined(MICA_KERNEL_HIGHWAY_DECODE_IQ2_XXS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_KERNEL_HIGHWAY_DECODE_IQ2_XXS_INL_HPP
#undef MICA_KERNEL_HIGHWAY_DECODE_IQ2_XXS_INL_HPP
#else
#define MICA_KERNEL_HIGHWAY_DECODE_IQ2_XXS_INL_HPP
#endif

#include "mica/kernel/highway/codebook-inl.hpp"

#if MICA_VECTORS
HWY_BEFORE_NAMESPACE();
namespace mica::kernel::highway {
inline namespace MICA_ABI {
namespace HWY_NAMESPACE {

template <>
struct Codec<format::IQ2_XXS> {
  using Block = format::IQ2_XXS::Block;
  static constexpr bool unit_scales = false;

  static HWY_INLINE void unpack(const Block& block, std::uint8_t* HWY_RESTRICT codes) {
    constexpr auto& words =
        format::codebook::words<std::uint64_t, format::codebook::iq2_xxs, format::codebook::iq2_levels>;
    HWY_UNROLL(1)
    for (std::size_t q = 0; q < 4; ++q) {
      const format::IQ2_XXS::Group* const group = block.groups + 2 * q;
      const auto word = [&](std::size_t j) { return words[group[j / 4].entries[j % 4]]; };
      const std::uint64_t signs = spread_signs(group[0].bits(), group[1].bits());
      store_signed<std::uint64_t, format::IQ2_XXS::code_offset>(word, signs, codes + 64 * q);
    }
  }

  /// Two groups are four words; scales are in the top bits of the second and the fourth. Lanes are rows.
  static HWY_INLINE void scales(const Block* const* rows, std::size_t, ChunkScales<format::IQ2_XXS>& out) {
    for (std::size_t g = 0; g < 8; g += 2) {
      const auto at = [rows, g](std::size_t r) {
        return reinterpret_cast<const std::int32_t*>(rows[r]->groups + g);
      };
      for (std::size_t r = 0; r < panel_rows; r += lanes) {
        VI word[4];
        load_words(at, r, word);
        hn::Store(odd_scale(field(word[1], 28, 15)), DF(), out.scale[g] + r);
        hn::Store(odd_scale(field(word[3], 28, 15)), DF(), out.scale[g + 1] + r);
      }
    }
    gather_scaled_d(rows, 0.125f, out.d);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace MICA_ABI
}  // namespace mica::kernel::highway
HWY_AFTER_NAMESPACE();
#endif  // MICA_VECTORS
#endif
