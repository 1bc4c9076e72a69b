// SPDX-License-Identifier: Apache-2.0
//
// Per target: Q4_1 in vectors. docs/policies/kernels.md describes the frame and what a Codec has.

#if defined(LESSON_Q4_1_CODEC_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef LESSON_Q4_1_CODEC_INL_HPP
#undef LESSON_Q4_1_CODEC_INL_HPP
#else
#define LESSON_Q4_1_CODEC_INL_HPP
#endif

#include "q4_1.hpp"

#if MICA_VECTORS
HWY_BEFORE_NAMESPACE();
namespace mica::kernel::highway {
inline namespace MICA_ABI {
namespace HWY_NAMESPACE {

template <>
struct Codec<lesson::IntegerQ4_1> {
  using Block = lesson::IntegerQ4_1::Block;
  static constexpr bool unit_scales = true;

  static HWY_INLINE void unpack(const Block* blocks, std::size_t n, std::uint8_t* HWY_RESTRICT codes) {
    const hn::CappedTag<std::uint8_t, 16> d;
    for (std::size_t b = 0; b < n; ++b, codes += 32) {
      const auto bytes = hn::LoadU(d, blocks[b].nibbles);
      hn::StoreU(hn::And(bytes, hn::Set(d, 15)), d, codes);
      hn::StoreU(hn::ShiftRight<4>(bytes), d, codes + 16);
    }
  }
  static HWY_INLINE void scales(const Block* const* rows, std::size_t n,
                                ChunkScales<lesson::IntegerQ4_1>& out) {
    gather_d(rows, n, out.d);
    for (std::size_t b = 0; b < n; ++b) {
      for (std::size_t r = 0; r < panel_rows; ++r) {
        out.min[b][r] = 1.0f;
        out.dmin[b][r] = -to_float(rows[r][b].m);
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
