// SPDX-License-Identifier: Apache-2.0
//
// Matrix products of a step, shared by the workers. Products with the same input go through one run, so that a layer
// waits as seldom as possible.
#pragma once

#include "mica/base/bits.hpp"
#include "mica/exec/concept.hpp"
#include "mica/kernel/concept.hpp"
#include "mica/tensor/any_matrix.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace mica::block {

/// Rows of a weight matrix in one task: enough to hide the call, few enough to share evenly.
inline constexpr std::size_t slice_rows = 64;

/// One product y = x W^T; with `add`, y += x W^T.
template <class List>
struct Product {
  tensor::AnyMatrix<List> w;  // (rows, k)
  MatrixView<float> y;        // (n, rows)
  bool add = false;
};

/// Computes products that share the input x (n, k).
template <Kernels K, Executor E, class List, std::size_t N>
void project(E& executor, const kernel::Input& x, const std::array<Product<List>, N>& products) noexcept {
  std::array<std::size_t, N + 1> first{};  // the first task of each product
  for (std::size_t i = 0; i < N; ++i) first[i + 1] = first[i] + ceil_div(products[i].w.rows(), slice_rows);
  executor.run(first[N], [&](std::size_t task, std::size_t) noexcept {
    std::size_t i = 0;
    while (task >= first[i + 1]) ++i;
    const Product<List>& product = products[i];
    product.w.visit([&](auto w) {
      using F = typename decltype(w)::Format;
      const std::size_t begin = (task - first[i]) * slice_rows;
      const std::size_t end = std::min(begin + slice_rows, w.rows());
      K::template matmul<F>(kernel::MatmulArgs<F>{w, x, product.y, begin, end, product.add});
    });
  });
}

/// Whether any of the matrices wants int8 activations.
template <class List, class... More>
[[nodiscard]] bool wants_codes(const tensor::AnyMatrix<List>& w, const More&... more) noexcept {
  bool integer = false;
  w.visit([&](auto m) { integer = decltype(m)::Format::arithmetic == format::Arithmetic::integer; });
  if constexpr (sizeof...(more) > 0) integer = integer || wants_codes(more...);
  return integer;
}

}  // namespace mica::block
