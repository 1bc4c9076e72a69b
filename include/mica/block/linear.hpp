// SPDX-License-Identifier: Apache-2.0
//
// Matrix products of a step, shared by the workers. Several products are computed in one parallel run, so
// that workers wait for each other less often.
#pragma once

#include "mica/base/bits.hpp"
#include "mica/exec/concept.hpp"
#include "mica/exec/partition.hpp"
#include "mica/format/detail/decoded.hpp"
#include "mica/kernel/concept.hpp"
#include "mica/kernel/fast8.hpp"
#include "mica/tensor/any_matrix.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

namespace mica::block {

/// Rows of a weight matrix in one task: enough to hide the call, few enough to balance workers.
inline constexpr std::size_t slice_rows = 64;

/// The same for products of n tokens with `rows` rows together: many tokens take up to four times as many,
/// which share the preparation of the tokens, as long as every worker gets eight tasks.
[[nodiscard]] constexpr std::size_t rows_of_task(std::size_t n, std::size_t rows,
                                                 std::size_t workers) noexcept {
  std::size_t slice = slice_rows;
  while (n >= 16 && slice < 4 * slice_rows && rows >= 8 * workers * 2 * slice) slice *= 2;
  return slice;
}
static_assert(rows_of_task(512, 16384, 2) == 256 && rows_of_task(512, 2048, 2) == 128);
static_assert(rows_of_task(512, 2048, 3) == 64 && rows_of_task(1, 16384, 1) == 64);

/// Matrices of up to this many weights stay in a cache that all cores share.
inline constexpr std::size_t shared_matrix = std::size_t{4} << 20;

/// The number of parts into which the n tokens of products are divided; numbers: the weights of the largest
/// matrix. Small matrices are read by every worker, for at least 64 tokens of its own, whose activations then
/// stay in its cache. Large ones are read once, so that each worker has some rows for all tokens.
[[nodiscard]] constexpr std::size_t token_parts(std::size_t n, std::size_t numbers,
                                                std::size_t workers) noexcept {
  return numbers > shared_matrix ? 1 : std::clamp<std::size_t>(n / 64, 1, workers);
}

static_assert(token_parts(512, 384 * 1536, 2) == 2 && token_parts(127, 384 * 1536, 2) == 1);
static_assert(token_parts(512, 4096 * 4096, 2) == 1 && token_parts(0, 384 * 1536, 4) == 1);

/// One product y = x W^T + bias; with `add`, y += that.
template <class List>
struct Product {
  tensor::AnyMatrix<List> w;    // (rows, k)
  MatrixView<float> y;          // (n, rows)
  bool add = false;             // y += the product, rather than =
  const float* bias = nullptr;  // (rows), or null
  bool in_floats = false;  // activations stay floats in any format: rows are decoded; w is small, not packed
};

/// Rows [begin, end) of a product.
template <Kernels K, class List>
void project_slice(const kernel::Input& x, const Product<List>& product, std::size_t begin,
                   std::size_t end) noexcept {
  const kernel::Input in{x.values, kernel::codes_if(!product.in_floats, x.codes)};
  product.w.visit([&](auto w) {
    using F = typename decltype(w)::Format;
    if constexpr (F::arithmetic == format::Arithmetic::integer && !tensor::is_packed<F>) {
      if (product.in_floats) {
        using D = format::Decoded<F>;
        const tensor::Matrix<D> decoded(w.row(0), w.rows(), w.cols());
        K::template matmul<D>(kernel::MatmulArgs<D>{decoded, in, product.y, begin, end, product.add});
        return;
      }
    }
    K::template matmul<F>(kernel::MatmulArgs<F>{w, in, product.y, begin, end, product.add});
  });
  if (product.bias == nullptr || begin >= end) return;
  const std::size_t n = product.y.rows(), count = end - begin;
  const MatrixView<const float> bias(product.bias + begin, n, count, 0);  // the same row for every token
  K::add(kernel::AddArgs{bias, product.y.cols(begin, count), 1, 0, n});
}

/// Computes products that share the input x (n, k); at most 8 of them.
template <Kernels K, Executor E, class List>
void project(E& executor, const kernel::Input& x, std::span<const Product<List>> products) noexcept {
  std::array<std::size_t, 9> first{};  // the first task of each product
  std::size_t rows = 0, largest = 0;
  MICA_ASSERT(products.size() < first.size());
  for (const Product<List>& product : products) {
    MICA_ASSERT(product.y.rows() == products[0].y.rows());
    rows += product.w.rows();
    largest = std::max(largest, product.w.rows() * product.w.cols());
  }
  const std::size_t n = products.empty() ? 0 : products[0].y.rows();
  const std::size_t parts = token_parts(n, largest, executor.workers());
  const std::size_t step = rows_of_task(n, rows * parts, executor.workers());
  for (std::size_t i = 0; i < products.size(); ++i) {
    first[i + 1] = first[i] + ceil_div(products[i].w.rows(), step);
  }
  const std::size_t tasks = first[products.size()];  // of each part
  executor.run(parts * tasks, [&](std::size_t task, std::size_t) noexcept {
    const exec::Range tokens = exec::partition(n, 8, parts, task / tasks);
    std::size_t i = 0;
    while (task % tasks >= first[i + 1]) ++i;
    const std::size_t begin = (task % tasks - first[i]) * step;
    Product<List> product = products[i];
    product.y = product.y.rows(tokens.begin, tokens.size());
    project_slice<K>(kernel::rows_of(x, tokens.begin, tokens.size()), product, begin,
                     std::min(begin + step, product.w.rows()));
  });
}
template <Kernels K, Executor E, class List, std::size_t N>
void project(E& executor, const kernel::Input& x, const std::array<Product<List>, N>& products) noexcept {
  project<K>(executor, x, std::span<const Product<List>>(products));
}

/// Whether products with any of the matrices need int8 activations: those with integer weights.
template <class List>
[[nodiscard]] bool needs_codes(const tensor::AnyMatrix<List>& w) noexcept {
  bool integer = false;
  if (!w.empty())
    w.visit([&](auto m) { integer = decltype(m)::Format::arithmetic == format::Arithmetic::integer; });
  return integer;
}
template <class... Matrices>
requires(sizeof...(Matrices) > 1) [[nodiscard]] bool needs_codes(const Matrices&... w) noexcept {
  return (needs_codes(w) || ...);
}

/// Whether products of activations like x with any of the matrices read codes: those that need them, and
/// those with floats of 16 bits that follow kernel/fast8.hpp.
template <class List>
[[nodiscard]] bool wants_codes(const kernel::QuantizedRows& x, const tensor::AnyMatrix<List>& w) noexcept {
  bool wanted = needs_codes(w);
  if (!w.empty() && kernel::scale_group(x) == kernel::fast8_group)
    w.visit([&](auto m) { wanted = kernel::can_be_fast8<typename decltype(m)::Format>; });
  return wanted;
}
template <class... Matrices>
requires(sizeof...(Matrices) > 1)
    [[nodiscard]] bool wants_codes(const kernel::QuantizedRows& x, const Matrices&... w) noexcept {
  return (wants_codes(x, w) || ...);
}

/// x for a product that must not round its weights: without codes, if they are not needed.
template <class List>
[[nodiscard]] kernel::Input unrounded(const kernel::Input& x, const tensor::AnyMatrix<List>& w) noexcept {
  return {x.values, kernel::codes_if(needs_codes(w), x.codes)};
}

}  // namespace mica::block
