// SPDX-License-Identifier: Apache-2.0
//
// Per target: IQ3_XXS in vectors (format/iq3_xxs.hpp has the layout).

#if defined(MICA_KERNEL_HIGHWAY_DECODE_IQ3_XXS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_KERNEL_HIGHWAY_DECODE_IQ3_XXS_INL_HPP
#undef MICA_KERNEL_HIGHWAY_DECODE_IQ3_XXS_INL_HPP
#else
#define MICA_KERNEL_HIGHWAY_DECODE_IQ3_XXS_INL_HPP
#endif

#include "mica/kernel/highway/codebook-inl.hpp"

#if MICA_VECTORS
HWY_BEFORE_NAMESPACE();
namespace mica::kernel::highway {
inline namespace MICA_ABI {
namespace HWY_NAMESPACE {

template <>
struct Codec<format::IQ3_XXS> {
  using Block = format::IQ3_XXS::Block;
  static constexpr bool unit_scales = false;

  static HWY_INLINE void unpack(const Block& block, std::uint8_t* HWY_RESTRICT codes) {
    constexpr auto& words =
        format::codebook::words<std::uint32_t, format::codebook::iq3_xxs, format::codebook::iq3_xxs_levels>;
    HWY_UNROLL(1)
    for (std::size_t q = 0; q < 4; ++q) {
      const std::uint8_t* const entries = block.entries + 16 * q;
      const auto word = [&](std::size_t j) { return words[entries[j]]; };
      const std::uint64_t signs =
          spread_signs(format::IQ3_XXS::bits(block, 2 * q), format::IQ3_XXS::bits(block, 2 * q + 1));
      store_signed<std::uint32_t, format::IQ3_XXS::code_offset>(word, signs, codes + 64 * q);
    }
  }

  /// Four groups have four words of signs, with scales in their top bits. Lanes are rows.
  static HWY_INLINE void scales(const Block* const* rows, std::size_t, ChunkScales<format::IQ3_XXS>& out) {
    for (std::size_t g = 0; g < 8; g += 4) {
      const auto at = [rows, g](std::size_t r) {
        return reinterpret_cast<const std::int32_t*>(rows[r]->halves + 2 * g);
      };
      for (std::size_t r = 0; r < panel_rows; r += lanes) {
        VI word[4];
        load_words(at, r, word);
        MICA_UNROLL
        for (std::size_t i = 0; i < 4; ++i)
          hn::Store(odd_scale(field(word[i], 28, 15)), DF(), out.scale[g + i] + r);
      }
    }
    gather_scaled_d(rows, 0.25f, out.d);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace MICA_ABI
}  // namespace mica::kernel::highway
HWY_AFTER_NAMESPACE();
#endif  // MICA_VECTORS
#endif
