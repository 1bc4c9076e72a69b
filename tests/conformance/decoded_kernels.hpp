// SPDX-License-Identifier: Apache-2.0
//
// What the kit calls exact, as a kernels policy: products with weights of any format are products with the floats that
// the format decodes to, and activations are never rounded. All the rest is kernel::Highway.

#pragma once

#include "mica/kernel/highway.hpp"

#include <vector>

namespace mica::test {

struct DecodedKernels : kernel::Highway {
  static constexpr std::string_view name = "decoded";

  template <WeightFormat F>
  static void matmul(const kernel::MatmulArgs<F>& a) noexcept {
    const std::size_t count = a.last - a.first, cols = a.w.cols();
    std::vector<float> rows(count * cols);
    for (std::size_t r = 0; r < count; ++r) a.w.decode_row(a.first + r, rows.data() + r * cols);
    Highway::matmul(kernel::MatmulArgs<format::F32>{
        {rows.data(), count, cols}, a.x, a.y.cols(a.first, count), 0, count, a.add});
  }
};

static_assert(Kernels<DecodedKernels>);

}  // namespace mica::test
