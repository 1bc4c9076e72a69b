// SPDX-License-Identifier: Apache-2.0
//
// Per target: the vector codec of a user's format, as docs/policies/kernels.md describes it.

#if defined(USER_CODEC_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef USER_CODEC_INL_HPP
#undef USER_CODEC_INL_HPP
#else
#define USER_CODEC_INL_HPP
#endif

#if MICA_VECTORS
HWY_BEFORE_NAMESPACE();
namespace MICA_PER_TARGET {

template <std::size_t Group>
struct Codec<user::Grouped<Group, true>> {
  using F = user::Grouped<Group, true>;
  using Block = typename F::Block;
  static constexpr bool unit_scales = false;

  static HWY_INLINE void unpack(const Block* blocks, std::size_t n, std::uint8_t* HWY_RESTRICT codes) {
    const hn::CappedTag<std::uint8_t, 64> d;
    for (std::size_t i = 0; i < 64 * n; i += hn::MaxLanes(d)) {
      const auto* const code = reinterpret_cast<const std::uint8_t*>(blocks[i / 64].code);
      hn::StoreU(hn::Xor(hn::LoadU(d, code + i % 64), hn::Set(d, 128)), d, codes + i);
    }
  }
  static HWY_INLINE void scales(const Block* const* rows, std::size_t n, ChunkScales<F>& out) {
    for (std::size_t r = 0; r < panel_rows; ++r) {
      for (std::size_t g = 0; g < n * 64 / Group; ++g) {
        const Block& block = rows[r][g * Group / 64];
        out.scale[g][r] = static_cast<float>(F::scale_of(block, g % (64 / Group)));
        out.min[g][r] = static_cast<float>(F::min_of(block, g % (64 / Group)));
      }
      for (std::size_t b = 0; b < n; ++b) {
        out.d[b][r] = to_float(rows[r][b].d);
        out.dmin[b][r] = to_float(rows[r][b].dmin);
      }
    }
  }
};

}  // namespace MICA_PER_TARGET
HWY_AFTER_NAMESPACE();
#endif  // MICA_VECTORS
#endif
