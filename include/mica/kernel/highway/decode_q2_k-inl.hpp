// SPDX-License-Identifier: Apache-2.0
//
// Per target: Q2_K in vectors (format/q2_k.hpp has the layout).

#if defined(MICA_KERNEL_HIGHWAY_DECODE_Q2_K_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_KERNEL_HIGHWAY_DECODE_Q2_K_INL_HPP
#undef MICA_KERNEL_HIGHWAY_DECODE_Q2_K_INL_HPP
#else
#define MICA_KERNEL_HIGHWAY_DECODE_Q2_K_INL_HPP
#endif

#include "mica/kernel/highway/codec-inl.hpp"

#if MICA_VECTORS
HWY_BEFORE_NAMESPACE();
namespace mica::kernel::highway {
inline namespace MICA_ABI {
namespace HWY_NAMESPACE {

template <>
struct Codec<format::Q2_K> {
  using Block = format::Q2_K::Block;
  static constexpr bool unit_scales = false;

  static HWY_INLINE void unpack(const Block& block, std::uint8_t* HWY_RESTRICT codes) {
    unpack_pairs(block.pairs, codes, [](auto, auto v, auto, std::size_t) HWY_ATTR { return v; });
  }

  /// Sixteen bytes of a row are four words, that is four groups each. Lanes are rows.
  static HWY_INLINE void scales(const Block* const* rows, std::size_t, ChunkScales<format::Q2_K>& out) {
    const auto at = [rows](std::size_t r) { return reinterpret_cast<const std::int32_t*>(rows[r]->scales); };
    for (std::size_t r = 0; r < panel_rows; r += lanes) {
      VI word[4];
      load_words(at, r, word);
      MICA_UNROLL
      for (std::size_t i = 0; i < 4; ++i) spread(word[i], i, r, out);
    }
    alignas(64) std::int32_t words[1][panel_rows];
    gather_words(
        rows, 1, [](const Block& block) { return &block.d; }, words);
    for (std::size_t r = 0; r < panel_rows; r += lanes) {
      store_d(hn::Load(DI(), words[0] + r), r, out);
    }
  }

  static constexpr std::size_t period = 128;
  template <std::size_t i>
  static HWY_INLINE VU8 line(const std::uint8_t* p, std::size_t s) {
    return move_bits<2 * (i / 32), 0>(packed_word(p, 8 * s + i % 32 / 4), 3);
  }
  static HWY_INLINE void packed_scales(const std::uint8_t* p, std::size_t, ChunkScales<format::Q2_K>& out) {
    for (std::size_t r = 0; r < panel_rows; r += lanes) {
      MICA_UNROLL
      for (std::size_t i = 0; i < 4; ++i) spread(packed_scale_word(p, i, r), i, r, out);
      store_d(packed_scale_word(p, 4, r), r, out);
    }
  }

 private:
  /// Scales and mins of groups 4 i .. 4 i + 3.
  static HWY_INLINE void spread(VI word, std::size_t i, std::size_t r, ChunkScales<format::Q2_K>& out) {
    store_bits<0, 15>(word, out.scale[4 * i] + r);
    store_bits<4, 15>(word, out.min[4 * i] + r);
    store_bits<8, 15>(word, out.scale[4 * i + 1] + r);
    store_bits<12, 15>(word, out.min[4 * i + 1] + r);
    store_bits<16, 15>(word, out.scale[4 * i + 2] + r);
    store_bits<20, 15>(word, out.min[4 * i + 2] + r);
    store_bits<24, 15>(word, out.scale[4 * i + 3] + r);
    store_bits<28, 15>(word, out.min[4 * i + 3] + r);
  }
  static HWY_INLINE void store_d(VI word, std::size_t r, ChunkScales<format::Q2_K>& out) {
    hn::Store(widen_low(word), DF(), out.d[0] + r);
    hn::Store(widen_low(hn::ShiftRight<16>(word)), DF(), out.dmin[0] + r);
  }
  template <int shift, std::int32_t mask>
  static HWY_INLINE void store_bits(VI v, float* out) {
    hn::Store(hn::ConvertTo(DF(), bits<shift>(v, mask)), DF(), out);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace MICA_ABI
}  // namespace mica::kernel::highway
HWY_AFTER_NAMESPACE();
#endif  // MICA_VECTORS
#endif
