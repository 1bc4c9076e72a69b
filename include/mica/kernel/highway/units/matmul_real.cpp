// SPDX-License-Identifier: Apache-2.0
//
// Unit: products with float formats, and the step that continues their chains for formats without a codec.

#include "mica/kernel/highway/dispatch.hpp"

MICA_INSTANTIATE_MATMUL(mica::format::F32)
MICA_INSTANTIATE_MATMUL(mica::format::NF4)

namespace mica::kernel::highway {
inline namespace MICA_KERNELS_ABI {

HWY_EXPORT(extend_chains);
HWY_EXPORT(fold_unpacked);

void extend_chains(const float* w, const float* x, std::size_t n, float* c) noexcept {
  HWY_DYNAMIC_DISPATCH(extend_chains)(w, x, n, c);
}
float fold_unpacked(const Unpacked& w, const std::int8_t* x, const float* xd, const std::int16_t* sums,
                    float y) noexcept {
  HWY_DYNAMIC_DISPATCH(fold_unpacked)(w, x, xd, sums, &y);
  return y;
}

}  // namespace MICA_KERNELS_ABI
}  // namespace mica::kernel::highway
