// SPDX-License-Identifier: Apache-2.0
//
// Per target: products of many tokens by kernel/fast8.hpp with floats of 16 bits. Sixteen rows are rounded
// 256 values at a time and make a panel of kernel::EightBits; from there on they are like all others
// (fast8-inl.hpp).

#if defined(MICA_KERNEL_HIGHWAY_FAST8_REAL_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef MICA_KERNEL_HIGHWAY_FAST8_REAL_INL_HPP
#undef MICA_KERNEL_HIGHWAY_FAST8_REAL_INL_HPP
#else
#define MICA_KERNEL_HIGHWAY_FAST8_REAL_INL_HPP
#endif

#include "mica/kernel/highway/elementwise-inl.hpp"
#include "mica/kernel/highway/fast8-inl.hpp"

#if MICA_VECTORS
HWY_BEFORE_NAMESPACE();
namespace mica::kernel::highway {
inline namespace MICA_ABI {
namespace HWY_NAMESPACE {

/// What kernel/quantize.hpp makes of 256 values of a row: the scale, and code + code_offset.
template <class T>
HWY_INLINE float round_row(const T* row, std::uint8_t* HWY_RESTRICT codes) {
  const hn::Rebind<std::int8_t, DF> d8;
  const hn::Rebind<std::uint8_t, DF> du8;
  const GroupScale by = scale_of(largest_magnitude(row, fast8_group));
  if (by.inverse == 0) {
    std::fill_n(codes, fast8_group, static_cast<std::uint8_t>(EightBits::code_offset));
    return by.scale;
  }
  const VF inverse = hn::Set(DF(), by.inverse);
  const auto offset = hn::Set(du8, EightBits::code_offset);
  MICA_UNROLL
  for (std::size_t k = 0; k < fast8_group; k += lanes) {
    const auto code = hn::DemoteTo(d8, hn::NearestInt(hn::Mul(load(row + k), inverse)));
    hn::StoreU(hn::Add(hn::BitCast(du8, code), offset), du8, codes + k);
  }
  return by.scale;
}

/// Sixteen rows; row(r): 256 values of row r.
template <class Row>
HWY_INLINE void round_panel(const Row& row, Panel<EightBits>& panel) {
  alignas(64) std::uint8_t codes[panel_rows][fast8_group];
  for (std::size_t r = 0; r < panel_rows; ++r) panel.scales.d[0][r] = round_row(row(r), codes[r]);
  set_lines(codes, fast8_group, panel);
}

template <WeightFormat F>
void matmul_real_fast8(const MatmulArgs<F>& a) {
  const auto fill = [&](std::size_t p, std::size_t b, std::size_t, Panel<EightBits>& panel) HWY_ATTR {
    const auto row_of = [&](std::size_t r) HWY_ATTR {
      const auto* const row = a.w.row(HWY_MIN(p * panel_rows + r, a.last - 1)) + b * fast8_group;
      for (std::size_t line = 0; line < fast8_group * sizeof(*row); line += 64)
        prefetch(row + fast8_group, line);
      return row;
    };
    round_panel(row_of, panel);
  };
  multiply_panels<EightBits>({a.x.codes, a.y, a.w.cols() / fast8_group, a.first, a.last, a.add}, fill);
}

}  // namespace HWY_NAMESPACE
}  // namespace MICA_ABI
}  // namespace mica::kernel::highway
HWY_AFTER_NAMESPACE();
#endif  // MICA_VECTORS
#endif
