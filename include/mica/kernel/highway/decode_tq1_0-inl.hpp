// SPDX-License-Identifier: Apache-2.0
//
// Per target: TQ1_0 in vectors (format/tq1_0.hpp has the layout).

#if defined(MICA_KERNEL_HIGHWAY_DECODE_TQ1_0_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_KERNEL_HIGHWAY_DECODE_TQ1_0_INL_HPP
#undef MICA_KERNEL_HIGHWAY_DECODE_TQ1_0_INL_HPP
#else
#define MICA_KERNEL_HIGHWAY_DECODE_TQ1_0_INL_HPP
#endif

#include "mica/kernel/highway/codec-inl.hpp"

#if MICA_VECTORS
HWY_BEFORE_NAMESPACE();
namespace mica::kernel::highway {
inline namespace MICA_ABI {
namespace HWY_NAMESPACE {

template <>
struct Codec<format::TQ1_0> {
  using Block = format::TQ1_0::Block;
  static constexpr bool unit_scales = true;

  static HWY_INLINE void unpack(const Block& block, std::uint8_t* HWY_RESTRICT codes) {
    const hn::CappedTag<std::uint8_t, 32> d32;
    const hn::CappedTag<std::uint8_t, 16> d16;
    const hn::CappedTag<std::uint8_t, 4> d4;
    for (std::size_t j = 0; j < 32; j += hn::MaxLanes(d32))
      take_digits(d32, block.digits + j, 32, 5, codes + j);
    take_digits(d16, block.digits + 32, 16, 5, codes + 160);
    take_digits(d4, block.digits + 48, 4, 4, codes + 240);
  }
  static HWY_INLINE void scales(const Block* const* rows, std::size_t, ChunkScales<format::TQ1_0>& out) {
    gather_d(rows, 1, out.d);
  }

 private:
  /// A digit is how many thirds of 256 a byte has passed; the next byte is three times this one.
  template <class D>
  static HWY_INLINE void take_digits(D d, const std::uint8_t* bytes, std::size_t stride, std::size_t places,
                                     std::uint8_t* HWY_RESTRICT codes) {
    auto fraction = hn::LoadU(d, bytes);
    MICA_UNROLL
    for (std::size_t place = 0; place < places; ++place) {
      const auto one = hn::Min(hn::SaturatedSub(fraction, hn::Set(d, 85)), hn::Set(d, 1));
      const auto two = hn::Min(hn::SaturatedSub(fraction, hn::Set(d, 170)), hn::Set(d, 1));
      hn::StoreU(hn::Add(one, two), d, codes + place * stride);
      fraction = hn::Add(fraction, hn::Add(fraction, fraction));
    }
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace MICA_ABI
}  // namespace mica::kernel::highway
HWY_AFTER_NAMESPACE();
#endif  // MICA_VECTORS
#endif
