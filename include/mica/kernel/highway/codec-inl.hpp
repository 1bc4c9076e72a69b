// SPDX-License-Identifier: Apache-2.0
//
// Per target: how the blocks of an integer format come apart in vectors. A codec has
//
//   unit_scales                       true when every integer scale is 1
//   unpack(block, codes)              block_size bytes code + code_offset, in order
//   scales(rows, n, out)              the scales of n blocks of 16 rows, lanes are rows; rows[r] is the first block
//
// The kernels work on chunks: 256 values of a row, or one block where blocks are longer.

#if defined(MICA_KERNEL_HIGHWAY_CODEC_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_KERNEL_HIGHWAY_CODEC_INL_HPP
#undef MICA_KERNEL_HIGHWAY_CODEC_INL_HPP
#else
#define MICA_KERNEL_HIGHWAY_CODEC_INL_HPP
#endif

#include "mica/kernel/highway/ops-inl.hpp"

#if MICA_VECTORS
HWY_BEFORE_NAMESPACE();
namespace mica::kernel::highway {
inline namespace MICA_ABI {
namespace HWY_NAMESPACE {

/// Rows that are computed together.
inline constexpr std::size_t panel_rows = 16;

template <class F>
struct Codec {
  static_assert(sizeof(F) == 0,
                "mica::kernel::Highway: a format with vector_codec = true needs a Codec<F>; name its file "
                "in MICA_USER_CODECS_INL before including mica/kernel/highway/dispatch.hpp");
};

/// The sizes of a chunk.
template <IntegerFormat F>
struct Chunk {
  static_assert(F::block_size % 32 == 0 && (F::group == 16 || F::group == 32));
  static constexpr std::size_t values =
      F::block_size >= 256 ? F::block_size : 256 / F::block_size * F::block_size;
  static_assert(values % 64 == 0, "a chunk is whole vectors");
  static constexpr std::size_t blocks = values / F::block_size;
  static constexpr std::size_t groups = values / F::group;
};

/// What 16 rows multiply their integer sums by, in one chunk.
template <IntegerFormat F>
struct ChunkScales {
  static_assert(!Codec<F>::unit_scales || F::group == 32, "groups of 16 are there for their scales");
  alignas(64) float scale[Codec<F>::unit_scales ? 1 : Chunk<F>::groups][panel_rows];
  alignas(64) float min[F::has_mins ? Chunk<F>::groups : 1][panel_rows];
  alignas(64) float d[Chunk<F>::blocks][panel_rows];
  alignas(64) float dmin[F::has_mins ? Chunk<F>::blocks : 1][panel_rows];
};

/// Sixteen half floats become floats.
HWY_INLINE void widen16(const Half* halves, float* out) {
  for (std::size_t i = 0; i < panel_rows; i += lanes) hn::StoreU(load(halves + i), DF(), out + i);
}

/// Half floats in the lower halves of lanes become floats.
HWY_INLINE VF widen_low(VI v) {
  const hn::Rebind<std::uint16_t, DF> d16;
  const hn::Rebind<hwy::float16_t, DF> dh;
  return hn::PromoteTo(DF(), hn::BitCast(dh, hn::TruncateTo(d16, hn::BitCast(DU(), v))));
}

/// The field d of n blocks of 16 rows.
template <class Block, std::size_t n_max>
HWY_INLINE void gather_d(const Block* const* rows, std::size_t n, float (&out)[n_max][panel_rows]) {
  Half halves[n_max][panel_rows];
  for (std::size_t r = 0; r < panel_rows; ++r) {
    for (std::size_t b = 0; b < n; ++b) halves[b][r] = rows[r][b].d;
  }
  for (std::size_t b = 0; b < n; ++b) widen16(halves[b], out[b]);
}

}  // namespace HWY_NAMESPACE
}  // namespace MICA_ABI
}  // namespace mica::kernel::highway
HWY_AFTER_NAMESPACE();
#endif  // MICA_VECTORS
#endif
