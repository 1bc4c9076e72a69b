// SPDX-License-Identifier: Apache-2.0
//
// Per target: NVFP4 in vectors (format/nvfp4.hpp has the layout).

#if defined(MICA_KERNEL_HIGHWAY_DECODE_NVFP4_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_KERNEL_HIGHWAY_DECODE_NVFP4_INL_HPP
#undef MICA_KERNEL_HIGHWAY_DECODE_NVFP4_INL_HPP
#else
#define MICA_KERNEL_HIGHWAY_DECODE_NVFP4_INL_HPP
#endif

#include "mica/kernel/highway/codec-inl.hpp"

#if MICA_VECTORS
HWY_BEFORE_NAMESPACE();
namespace mica::kernel::highway {
inline namespace MICA_ABI {
namespace HWY_NAMESPACE {

template <>
struct Codec<format::NVFP4> {
  using Block = format::NVFP4::Block;
  static constexpr bool unit_scales = false;

  static HWY_INLINE void unpack(const Block* blocks, std::size_t n, std::uint8_t* HWY_RESTRICT codes) {
    const hn::CappedTag<std::uint8_t, 32> d;
    const hn::Repartition<std::uint64_t, decltype(d)> d64;
    const auto table = hn::LoadDup128(d, offset_fp4);
    for (std::size_t i = 0; i < 32 * n; i += hn::MaxLanes(d)) {
      const auto bytes = hn::LoadU(d, blocks[i / 32].nibbles + i % 32);
      const auto low = hn::BitCast(d64, hn::TableLookupBytes(table, hn::And(bytes, hn::Set(d, 15))));
      const auto high = hn::BitCast(d64, hn::TableLookupBytes(table, hn::ShiftRight<4>(bytes)));
      store_pair(d, hn::BitCast(d, hn::InterleaveWholeLower(d64, low, high)),
                 hn::BitCast(d, hn::InterleaveWholeUpper(d64, low, high)), codes + 2 * i);
    }
  }
  static HWY_INLINE void scales(const Block* const* rows, std::size_t n, ChunkScales<format::NVFP4>& out) {
    alignas(64) std::int32_t words[Chunk<format::NVFP4>::blocks][panel_rows];
    gather_words(
        rows, n, [](const Block& block) { return block.scales; }, words);
    MICA_UNROLL
    for (std::size_t b = 0; b < n; ++b) {
      for (std::size_t r = 0; r < panel_rows; r += lanes) {
        const VI word = hn::Load(DI(), words[b] + r);
        hn::Store(whole_scale(bits<0>(word, 255)), DF(), out.scale[4 * b] + r);
        hn::Store(whole_scale(bits<8>(word, 255)), DF(), out.scale[4 * b + 1] + r);
        hn::Store(whole_scale(bits<16>(word, 255)), DF(), out.scale[4 * b + 2] + r);
        hn::Store(whole_scale(bits<24>(word, 255)), DF(), out.scale[4 * b + 3] + r);
        hn::Store(hn::Set(DF(), 0x1p-10f), DF(), out.d[b] + r);
      }
    }
  }

 private:
  /// 512 times the number that a byte stands for: its bits are those of a half float 2^8 times smaller.
  static HWY_INLINE VF whole_scale(VI byte) {
    const VI number = hn::IfThenZeroElse(hn::Eq(byte, hn::Set(DI(), 0x7F)), byte);
    const VI half = hn::ShiftLeft<7>(hn::And(number, hn::Set(DI(), 0x7F)));
    return hn::Mul(widen_low(half), hn::Set(DF(), 0x1p17f));
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace MICA_ABI
}  // namespace mica::kernel::highway
HWY_AFTER_NAMESPACE();
#endif  // MICA_VECTORS
#endif
