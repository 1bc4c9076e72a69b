// SPDX-License-Identifier: Apache-2.0
//
// Per target: SYM3 in vectors. docs/policies/kernels.md describes the frame and what a Codec has.

#if defined(LESSON_SYM3_CODEC_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef LESSON_SYM3_CODEC_INL_HPP
#undef LESSON_SYM3_CODEC_INL_HPP
#else
#define LESSON_SYM3_CODEC_INL_HPP
#endif

#include "sym3.hpp"

#if MICA_VECTORS
HWY_BEFORE_NAMESPACE();
namespace MICA_PER_TARGET {

template <>
struct Codec<mine::Sym3> {
  using Block = mine::Sym3::Block;
  static constexpr bool unit_scales = true;

  static HWY_INLINE void unpack(const Block* blocks, std::size_t n, std::uint8_t* HWY_RESTRICT codes) {
    static constexpr std::uint8_t bits[8] = {1, 2, 4, 8, 16, 32, 64, 128};
    const hn::CappedTag<std::uint8_t, 8> d;
    const auto bit = hn::LoadU(d, bits), two_bits = hn::Set(d, 3), four = hn::Set(d, 4);
    for (std::size_t b = 0; b < n; ++b) {
      auto low = hn::LoadU(d, blocks[b].low);
      for (const std::uint8_t byte : blocks[b].high) {
        const auto high = hn::IfThenElseZero(hn::TestBit(hn::Set(d, byte), bit), four);
        hn::StoreU(hn::Or(hn::And(low, two_bits), high), d, codes);
        low = hn::ShiftRight<2>(low);
        codes += 8;
      }
    }
  }
  static HWY_INLINE void scales(const Block* const* rows, std::size_t n, ChunkScales<mine::Sym3>& out) {
    gather_d(rows, n, out.d);
  }
};

}  // namespace MICA_PER_TARGET
HWY_AFTER_NAMESPACE();
#endif  // MICA_VECTORS
#endif
