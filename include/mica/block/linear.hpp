// SPDX-License-Identifier: Apache-2.0
//
// Matrix products of a step, shared by the workers. Several products are computed in one parallel run, so
// that workers wait for each other less often.
#pragma once

#include "mica/base/bits.hpp"
#include "mica/block/norm.hpp"
#include "mica/exec/concept.hpp"
#include "mica/exec/partition.hpp"
#include "mica/format/detail/decoded.hpp"
#include "mica/kernel/concept.hpp"
#include "mica/kernel/fast8.hpp"
#include "mica/kernel/second_codes.hpp"
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

/// Matrices of up to this many weights together stay in a cache that all cores share.
inline constexpr std::size_t shared_matrix = std::size_t{4} << 20;

/// The number of tasks, each with a block of the n tokens and all rows, if products with matrices of
/// `numbers` weights together are divided by tokens; 0: they are divided by rows. Small matrices are read by
/// every worker, for 32 to 64 tokens at a time, whose activations stay in the core's own cache. Large ones
/// are read once, so that each worker has some rows for all tokens. More tokens at a time are no faster, and
/// leave a worker idle for longer where the other one's core is shared with other programs.
[[nodiscard]] constexpr std::size_t token_blocks(std::size_t n, std::size_t numbers,
                                                 std::size_t workers) noexcept {
  if (numbers > shared_matrix || n < 32 * workers) return 0;
  return round_up(ceil_div<std::size_t>(n, 64), workers);
}
static_assert(token_blocks(512, 384 * 1536, 2) == 8 && token_blocks(128, 384 * 1536, 2) == 2);
static_assert(token_blocks(64, 384 * 1536, 2) == 2 && token_blocks(63, 384 * 1536, 2) == 0);
static_assert(token_blocks(512, 4096 * 4096, 2) == 0 && token_blocks(0, 384 * 1536, 4) == 0);

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

/// The weights of all matrices.
template <class List>
[[nodiscard]] std::size_t weights_of(std::span<const Product<List>> products) noexcept {
  std::size_t all = 0;
  for (const Product<List>& product : products) all += product.w.rows() * product.w.cols();
  return all;
}

/// All rows of products for some tokens of x and y.
template <Kernels K, class List>
void project_tokens(const kernel::Input& x, std::span<const Product<List>> products,
                    const exec::Range& tokens) noexcept {
  for (Product<List> product : products) {
    product.y = product.y.rows(tokens.begin, tokens.size());
    project_slice<K>(kernel::rows_of(x, tokens.begin, tokens.size()), product, 0, product.w.rows());
  }
}

/// Computes products that share the input x (n, k); at most 8 of them.
template <Kernels K, Executor E, class List>
void project(E& executor, const kernel::Input& x, std::span<const Product<List>> products) noexcept {
  std::array<std::size_t, 9> first{};  // the first task of each product
  std::size_t rows = 0;
  MICA_ASSERT(products.size() < first.size());
  for (const Product<List>& product : products) {
    MICA_ASSERT(product.y.rows() == products[0].y.rows());
    rows += product.w.rows();
  }
  const std::size_t n = products.empty() ? 0 : products[0].y.rows();
  if (const std::size_t blocks = token_blocks(n, weights_of(products), executor.workers()); blocks != 0) {
    return executor.run(blocks, [&](std::size_t block, std::size_t) noexcept {
      project_tokens<K>(x, products, exec::partition(n, 8, blocks, block));
    });
  }
  const std::size_t step = rows_of_task(n, rows, executor.workers());
  for (std::size_t i = 0; i < products.size(); ++i) {
    first[i + 1] = first[i] + ceil_div(products[i].w.rows(), step);
  }
  executor.run(first[products.size()], [&](std::size_t task, std::size_t) noexcept {
    std::size_t i = 0;
    while (task >= first[i + 1]) ++i;
    const std::size_t begin = (task - first[i]) * step;
    project_slice<K>(x, products[i], begin, std::min(begin + step, products[i].w.rows()));
  });
}
template <Kernels K, Executor E, class List, std::size_t N>
void project(E& executor, const kernel::Input& x, const std::array<Product<List>, N>& products) noexcept {
  project<K>(executor, x, std::span<const Product<List>>(products));
}

/// Whether products with a matrix need int8 activations: those with integer weights.
template <class List>
[[nodiscard]] bool needs_codes(const tensor::AnyMatrix<List>& w) noexcept {
  bool integer = false;
  if (!w.empty())
    w.visit([&](auto m) { integer = decltype(m)::Format::arithmetic == format::Arithmetic::integer; });
  return integer;
}
/// The same of any of several matrices.
template <class... Matrices>
requires(sizeof...(Matrices) > 1) [[nodiscard]] bool needs_codes(const Matrices&... w) noexcept {
  return (needs_codes(w) || ...);
}

/// The memory for the codes of an input, and which codes are made.
struct InputCodes {
  kernel::QuantizedRows place;  // (n, k), for the codes
  bool quantized = false;       // they are made
  bool second_codes = false;    // exact products read second codes too (kernel/second_codes.hpp)

  /// Whether products with second codes follow.
  [[nodiscard]] bool makes_second() const noexcept {
    return second_codes && quantized && kernel::scale_group(place) == kernel::activation_group;
  }
  [[nodiscard]] kernel::QuantizedRows codes() const noexcept { return kernel::codes_if(quantized, place); }
};

/// The products that read codes once more, to be added with second codes. At most 8.
template <class List>
class SecondProducts {
 public:
  explicit SecondProducts(std::span<const Product<List>> products) noexcept {
    for (Product<List> product : products) {
      if (product.in_floats || !needs_codes(product.w)) continue;
      product.add = true;
      product.bias = nullptr;
      product_[count_++] = product;
    }
  }
  [[nodiscard]] std::span<const Product<List>> all() const noexcept {
    return std::span(product_).first(count_);
  }

 private:
  std::array<Product<List>, 8> product_;
  std::size_t count_ = 0;
};

/// Adds the products with second codes, which take the place of the codes of x.
template <Kernels K, Executor E, class List>
void project_second(E& executor, const kernel::Input& x, std::span<const Product<List>> products) noexcept {
  executor.run(x.values.rows(), [&](std::size_t row, std::size_t) noexcept {
    kernel::make_second_codes(x.values[row], x.codes, row);
  });
  project<K>(executor, x, SecondProducts<List>(products).all());
}

/// All rows of products for some tokens of x and y, whose codes are made first.
template <Kernels K, class List>
void quantize_and_project_tokens(MatrixView<const float> x, const InputCodes& how,
                                 std::span<const Product<List>> products,
                                 const exec::Range& tokens) noexcept {
  const kernel::Input in{x, how.codes()};
  if (how.quantized) K::quantize(kernel::QuantizeArgs{x, how.place, tokens.begin, tokens.end});
  project_tokens<K>(in, products, tokens);
  if (!how.makes_second()) return;
  for (std::size_t row = tokens.begin; row < tokens.end; ++row)
    kernel::make_second_codes(x[row], how.place, row);
  project_tokens<K>(in, SecondProducts<List>(products).all(), tokens);
}

/// Computes products that share the input x (n, k), whose codes are made first; at most 8 of them.
template <Kernels K, Executor E, class List>
void quantize_and_project(E& executor, MatrixView<const float> x, const InputCodes& how,
                          std::span<const Product<List>> products) noexcept {
  const std::size_t n = x.rows();
  if (const std::size_t blocks = token_blocks(n, weights_of(products), executor.workers()); blocks != 0) {
    return executor.run(blocks, [&](std::size_t block, std::size_t) noexcept {
      quantize_and_project_tokens<K>(x, how, products, exec::partition(n, 8, blocks, block));
    });
  }
  project<K>(executor, quantize<K>(executor, x, how.place, how.quantized), products);
  if (how.makes_second()) project_second<K>(executor, {x, how.place}, products);
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
