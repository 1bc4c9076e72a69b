// SPDX-License-Identifier: Apache-2.0
//
// Products of the vector kernels against the specification: every bit, every target, every format.

#include "kernel/formats.hpp"
#include "kernel/product.hpp"
#include "mica/kernel/highway.hpp"

#include <limits>

namespace mica::matmul_test {
namespace {

using test::Product;

constexpr float inf = std::numeric_limits<float>::infinity();

/// Widths in blocks: real formats end anywhere, integer formats in whole blocks.
template <class F>
std::vector<std::size_t> widths() {
  if (F::block_size == 1) return {1, 7, 16, 31, 33, 257};
  if (F::block_size <= 128) return {1, 2, 3, 5, 8, 9, 17};
  return {1, 2, 3, 5};
}

TEST_CASE_TEMPLATE_DEFINE("products equal the specification for any number of rows", F, rows) {
  CounterRng rng(1);
  for (std::size_t rows = 1; rows <= 35; ++rows) {
    for (const std::size_t tokens : std::initializer_list<std::size_t>{1, 5})
      Product<F>(rows, widths<F>()[rows % widths<F>().size()], tokens, rng).check();
  }
}
TEST_CASE_TEMPLATE_APPLY(rows, test::VectorFormats);

TEST_CASE_TEMPLATE_DEFINE("products equal the specification for any number of tokens and any width", F,
                          tokens) {
  CounterRng rng(2);
  for (const std::size_t width : widths<F>()) {
    for (const std::size_t tokens : std::initializer_list<std::size_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 17, 19})
      Product<F>(19, width, tokens, rng).check();
  }
}
TEST_CASE_TEMPLATE_APPLY(tokens, test::VectorFormats);

TEST_CASE_TEMPLATE_DEFINE("a slice of rows writes its own outputs only, and adds when asked", F, slices) {
  CounterRng rng(3);
  for (const std::size_t tokens : std::initializer_list<std::size_t>{1, 2, 3, 4, 11}) {
    Product<F> product(37, 2, tokens, rng);
    product.check(0, 0);
    product.check(5, 6, true);
    product.check(3, 36);
    product.check(16, 32, true);
    product.check(36, 37);
  }
}
TEST_CASE_TEMPLATE_APPLY(slices, test::VectorFormats);

TEST_CASE_TEMPLATE("products with single numbers that have no codec equal the specification", F, format::I8,
                   format::I16, format::I64) {
  CounterRng rng(8);
  for (const std::size_t tokens : std::initializer_list<std::size_t>{1, 4})
    Product<F>(5, 33, tokens, rng).check();
}

TEST_CASE_TEMPLATE(
    "neither the end of a tile, nor of a block of tokens, nor of a strip of rows shows in a product", F,
    format::Q4_K, format::Q6_K, format::Q3_K, format::Q8_0, format::Q4_1, format::NVFP4, format::F16) {
  CounterRng rng(4);
  for (const std::size_t tokens : std::initializer_list<std::size_t>{10, 11, 12, 13, 14, 15, 23, 24, 25})
    Product<F>(18, 2, tokens, rng).check();
  for (const std::size_t tokens : std::initializer_list<std::size_t>{95, 97, 127, 128, 129, 133, 257})
    Product<F>(18, 1, tokens, rng).check();
  Product<F> product(275, 2, 7, rng);
  product.check();
  product.check(13, 272, true);
}

TEST_CASE_TEMPLATE("rows longer than a tile takes at once, and more than share it, change nothing", F,
                   format::F32, format::F16, format::BF16) {
  CounterRng rng(9);
  for (const std::size_t tokens : std::initializer_list<std::size_t>{1, 13, 19, 41})
    Product<F>(83, 2087, tokens, rng).check(3, 81, true);
}

TEST_CASE_TEMPLATE_DEFINE("the largest codes and scales stay exact", F, largest) {
  CounterRng rng(5);
  for (const int byte : {0x00, 0x7F, 0x80, 0xFF}) {
    for (const std::size_t tokens : std::initializer_list<std::size_t>{1, 3, 6, 16}) {
      Product<F> product(17, 2, tokens, rng);
      for (auto& block : product.blocks) test::fill_bytes<F>(block, byte);
      for (std::size_t i = 0; i < product.x.values.size(); ++i)
        product.x.values[i] = (i / 3) % 5 == 0 ? -2.0f : 2.0f;
      product.prepare();
      product.check();
    }
  }
}
TEST_CASE_TEMPLATE_APPLY(largest, test::IntegerFormats);

TEST_CASE_TEMPLATE_DEFINE("a NaN or an infinity spoils its token and no other", F, spoils) {
  CounterRng rng(6);
  for (const std::size_t tokens : std::initializer_list<std::size_t>{2, 6, 18}) {
    Product<F> product(9, 2, tokens, rng);
    product.x.values[0] = std::numeric_limits<float>::quiet_NaN();
    product.x.values[product.cols + product.cols / 2] = -inf;
    product.prepare();
    product.check();
    const std::vector<float> y = product.template run<kernel::Highway>(0, 9, false);
    CHECK(y[0] != y[0]);
    if (tokens > 2) CHECK(std::isfinite(y[2 * 9]));
  }
}
TEST_CASE_TEMPLATE_APPLY(spoils, test::VectorFormats);

TEST_CASE_TEMPLATE("products that round to minus zero keep their sign", F, format::F32, format::BF16) {
  CounterRng rng(7);
  Product<F> product(3, 19, 2, rng);
  for (auto& block : product.blocks) {
    const float tiny = -1e-30f;
    F::encode(&tiny, block);
  }
  for (float& v : product.x.values) v = 1e-30f;
  product.check();
}

}  // namespace
}  // namespace mica::matmul_test
