// SPDX-License-Identifier: Apache-2.0
//
// Products with float formats, a row at a time: sixteen chains are continued in vectors
// (kernel/detail/row_products.hpp). Numbers of 16 bits become floats in vectors, those of other formats by
// the format's own code.
#pragma once

#include "mica/format/float.hpp"
#include "mica/kernel/detail/row_products.hpp"
#include "mica/kernel/xsimd/vectors.hpp"

namespace mica::kernel::xsimd {

template <class A, WeightFormat F>
void matmul_real(const MatmulArgs<F>& a) noexcept {
  kernel::detail::for_rows(a, [&](std::size_t row, std::size_t token, std::size_t tokens) {
    if constexpr (is_plain<F>) {
      const auto decode = [](const auto& w, std::size_t r, std::size_t k, std::size_t n, float* values) {
        widen<A>(w.row(r) + k, n, values);
      };
      kernel::detail::decoded_row<F>(a, row, token, tokens, extend_chains<A>, decode);
    } else {
      kernel::detail::decoded_row<F>(a, row, token, tokens, extend_chains<A>);
    }
  });
}

}  // namespace mica::kernel::xsimd
