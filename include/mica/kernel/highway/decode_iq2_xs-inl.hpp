// SPDX-License-Identifier: Apache-2.0
//
// Per target: IQ2_XS in vectors (format/iq2_xs.hpp has the layout).

#if defined(MICA_KERNEL_HIGHWAY_DECODE_IQ2_XS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_KERNEL_HIGHWAY_DECODE_IQ2_XS_INL_HPP
#undef MICA_KERNEL_HIGHWAY_DECODE_IQ2_XS_INL_HPP
#else
#define MICA_KERNEL_HIGHWAY_DECODE_IQ2_XS_INL_HPP
#endif

#include "mica/kernel/highway/codebook-inl.hpp"

#if MICA_VECTORS
HWY_BEFORE_NAMESPACE();
namespace mica::kernel::highway {
inline namespace MICA_ABI {
namespace HWY_NAMESPACE {

template <>
struct Codec<format::IQ2_XS> {
  using Block = format::IQ2_XS::Block;
  static constexpr bool unit_scales = false;

  static HWY_INLINE void unpack(const Block& block, std::uint8_t* HWY_RESTRICT codes) {
    constexpr auto& words =
        format::codebook::words<std::uint64_t, format::codebook::iq2_xs, format::codebook::iq2_levels>;
    HWY_UNROLL(1)
    for (std::size_t q = 0; q < 4; ++q) {
      const std::uint16_t* const from = block.words + 8 * q;
      const auto word = [&](std::size_t j) { return words[from[j] & 511]; };
      store_signed<std::uint64_t, format::IQ2_XS::code_offset>(word, eight_signs(from), codes + 64 * q);
    }
  }

  static HWY_INLINE void scales(const Block* const* rows, std::size_t, ChunkScales<format::IQ2_XS>& out) {
    odd_nibble_scales([rows](std::size_t r) { return rows[r]->scales + 8; }, out.scale);
    gather_scaled_d(rows, 0.125f, out.d);
  }

 private:
  /// The upper seven bits of eight words, with the eighth sign.
  static HWY_INLINE std::uint64_t eight_signs(const std::uint16_t* words) {
    const hn::CappedTag<std::uint16_t, 8> d;
    const hn::Rebind<std::uint8_t, decltype(d)> bytes;
    std::uint64_t signs;
    hn::StoreU(hn::DemoteTo(bytes, hn::ShiftRight<9>(hn::LoadU(d, words))), bytes,
               reinterpret_cast<std::uint8_t*>(&signs));
    return even_signs(signs);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace MICA_ABI
}  // namespace mica::kernel::highway
HWY_AFTER_NAMESPACE();
#endif  // MICA_VECTORS
#endif
