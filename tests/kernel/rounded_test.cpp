// SPDX-License-Identifier: Apache-2.0
//
// Rows that are rounded once, when they are packed (tensor/rounded.hpp), against products that round them
// each time (kernel/fast8.hpp).

#include "mica/tensor/rounded.hpp"

#include "kernel/formats.hpp"
#include "kernel/product.hpp"
#include "mica/kernel/fast8.hpp"

#include <cstring>
#include <limits>

namespace mica::test::rounded_test {
namespace {

using F = format::Q8_0;
using Rounded = tensor::Rounded<F>;

/// Kernels and formats that derive from those have none of it.
struct Derived : kernel::Highway {};
struct OwnFormat : F {};
static_assert(kernel::reads_rounded<kernel::Scalar> && kernel::reads_rounded<kernel::Highway> &&
              kernel::reads_rounded<kernel::Fast8<kernel::Highway>>);
static_assert(!kernel::reads_rounded<Derived> && !kernel::reads_rounded<kernel::Fast8<Derived>>);
static_assert(tensor::RoundableFormat<F> && !tensor::RoundableFormat<OwnFormat> &&
              !tensor::RoundableFormat<format::Q4_0>);

/// Rows of a product, rounded.
struct RoundedRows {
  Guarded<typename F::Block> blocks;
  std::size_t rows, cols;

  explicit RoundedRows(const Product<F>& product)
      : blocks(product.blocks.size()), rows(product.rows), cols(product.cols) {
    const auto file = as_bytes(std::span(product.blocks.data(), blocks.size()));
    kernel::round_rows<F>(file, cols, reinterpret_cast<std::byte*>(blocks.data()));
  }
  [[nodiscard]] tensor::Matrix<Rounded> matrix() const { return {blocks.data(), rows, cols}; }
};

/// Every target and the specification give the bits of a product that rounds rows itself.
void check(Product<F>& product, std::size_t first, std::size_t last, bool add = false) {
  const RoundedRows rounded(product);
  const std::vector<float> expected = product.run<kernel::Scalar>(first, last, add);
  const auto same = [&](const std::vector<float>& actual) {
    return differences(expected.data(), actual.data(), expected.size()) == 0;
  };
  INFO(product.rows << " x " << product.cols << ", tokens " << product.x.n << ", rows " << first << " to "
                    << last);
  CHECK(same(product.run_with<kernel::Scalar, Rounded>(rounded.matrix(), first, last, add)));
  for_each_target(
      [&] { CHECK(same(product.run_with<kernel::Highway, Rounded>(rounded.matrix(), first, last, add))); });
}

}  // namespace

TEST_CASE("rows are rounded to the codes that products round them to, in the bytes of the file") {
  CounterRng rng(1);
  for (const std::size_t rows : {1u, 15u, 16u, 17u, 37u}) {
    for (const std::size_t cols : {64u, 128u, 256u, 320u, 384u, 448u, 512u}) {
      const Product<F> product(rows, cols / 32, 1, rng);
      const tensor::Matrix<F> file(product.blocks.data(), rows, cols);
      const RoundedRows rounded(product);
      std::vector<float> values(cols);
      for (std::size_t r = 0; r < rows; ++r) {
        rounded.matrix().decode_row(r, values.data());
        for (std::size_t k = 0; k < cols && r < rounded.matrix().packed_rows(); k += 256) {
          const tensor::RoundedBlock expected = kernel::requantise<F>(file, r, k / 256),
                                     actual = rounded.matrix().rounded(r, k / 256);
          CHECK(std::memcmp(&expected, &actual, sizeof expected) == 0);
          CHECK(values[k] == expected.d * static_cast<float>(expected.code[0]));
        }
      }
    }
  }
}

TEST_CASE("products with rounded rows have the bits of products that round") {
  CounterRng rng(2);
  for (const std::size_t tokens : {1u, 2u, 3u, 5u, 8u, 9u, 13u, 17u, 97u}) {
    for (const std::size_t cols : {64u, 256u, 384u, 448u}) {
      Product<F> product(37, cols / 32, tokens, rng);
      product.use_fast8(1);
      check(product, 0, 37);
      check(product, 16, 32, true);
      check(product, 5, 36);
      check(product, 33, 34, true);
    }
  }
}

TEST_CASE("a product that takes more than one strip and more than one block of tokens has them too") {
  CounterRng rng(3);
  Product<F> product(272 + 5, 12, 300, rng);
  product.use_fast8(1);
  check(product, 0, product.rows);
}

TEST_CASE("a scale that is not finite spoils its rows when it is rounded before, zeros make zeros") {
  CounterRng rng(4);
  for (const float d :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN(), 0.0f}) {
    Product<F> product(16, 8, 9, rng);
    for (std::size_t b = 8; b < 16; ++b) product.blocks[b].d = to_half(d);
    product.use_fast8(1);
    check(product, 0, 16);
  }
}

TEST_CASE("widths that cannot be rounded are packed as they are") {
  CHECK(kernel::rounded_id<format::All>(F::id, 96) == F::id);
  CHECK(kernel::rounded_id<format::All>(F::id, 128) == Rounded::id);
  CHECK(kernel::rounded_id<format::All>(format::Q4_0::id, 128) == format::Q4_0::id);
  CounterRng rng(5);
  const Product<F> product(16, 3, 1, rng);
  const auto file = as_bytes(std::span(product.blocks.data(), product.blocks.size()));
  std::vector<std::byte> rounding(file.size()), plain(file.size());
  kernel::rounding_in<format::All>(F::id).pack(file, 96, rounding.data());
  tensor::packing_in<format::All>(F::id).pack(file, 96, plain.data());
  CHECK(rounding == plain);
}

}  // namespace mica::test::rounded_test
