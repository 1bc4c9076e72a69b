// SPDX-License-Identifier: Apache-2.0
//
// Products by kernel/fast8.hpp: the vector kernels against the specification, and the specification against
// exact products.

#include "mica/kernel/fast8.hpp"

#include "kernel/formats.hpp"
#include "kernel/product.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace mica::fast8_test {
namespace {

using test::Product;

constexpr float inf = std::numeric_limits<float>::infinity();

/// Blocks of 256 values.
template <class F>
inline constexpr std::size_t chunk_blocks = 256 / F::block_size;

template <class F>
std::vector<float> fast8_of(Product<F>& product) {
  if (product.x.fast8_from == 0) product.use_fast8();
  return product.template run<kernel::Highway>(0, product.rows, false);
}

TEST_CASE_TEMPLATE_DEFINE("requantised products equal their specification", F, same) {
  CounterRng rng(1);
  for (const std::size_t tokens : std::initializer_list<std::size_t>{17, 18, 97}) {
    Product<F> product(37, 2 * chunk_blocks<F>, tokens, rng);
    product.use_fast8();
    product.check();
    product.check(5, 36, true);
  }
}
TEST_CASE_TEMPLATE_APPLY(same, test::Fast8Formats);

TEST_CASE_TEMPLATE_DEFINE("products of any number of tokens may be requantised", F, few_tokens) {
  CounterRng rng(10);
  for (const std::size_t tokens : std::initializer_list<std::size_t>{1, 2, 3, 4, 9, 16}) {
    Product<F> product(37, 2 * chunk_blocks<F>, tokens, rng);
    const std::vector<float> exact = product.template run<kernel::Scalar>(0, product.rows, false);
    product.use_fast8(1);
    product.check();
    product.check(5, 36, true);
    CHECK(fast8_of(product) != exact);
  }
}
TEST_CASE_TEMPLATE_APPLY(few_tokens, test::Fast8Formats);

TEST_CASE_TEMPLATE_DEFINE("the last run of a row may be shorter than 256", F, shorter) {
  CounterRng rng(11);
  for (const std::size_t cols : std::initializer_list<std::size_t>{64, 128, 192, 384, 448}) {
    if (cols % F::block_size != 0) continue;
    Product<F> product(37, cols / F::block_size, 33, rng);
    const std::vector<float> exact = product.template run<kernel::Scalar>(0, product.rows, false);
    product.use_fast8();
    product.check();
    product.check(5, 36, true);
    CHECK(product.template run<kernel::Highway>(0, product.rows, false) != exact);
  }
}
TEST_CASE_TEMPLATE_APPLY(shorter, test::Fast8Formats);

TEST_CASE_TEMPLATE_DEFINE("codes of any size and sign fit into eight bits", F, fit) {
  CounterRng rng(2);
  for (const int byte : {0x00, 0x7F, 0x80, 0xFF}) {
    Product<F> product(17, chunk_blocks<F>, 19, rng);
    for (auto& block : product.blocks) test::fill_bytes<F>(block, byte);
    product.use_fast8();
    product.check();
  }
}
TEST_CASE_TEMPLATE_APPLY(fit, test::IntegerFormats);

TEST_CASE_TEMPLATE_DEFINE("requantising costs little, and few tokens or odd rows nothing", F, close) {
  CounterRng rng(3);
  Product<F> product(16, 4 * chunk_blocks<F>, 33, rng);
  const std::vector<float> exact = product.template run<kernel::Scalar>(0, 16, false),
                           fast = fast8_of(product);
  double difference = 0, total = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    difference += std::pow(double{fast[i]} - exact[i], 2);
    total += std::pow(double{exact[i]}, 2);
  }
  CHECK(difference > 0);
  CHECK(std::sqrt(difference / total) < 0.02);

  Product<F> few(16, chunk_blocks<F>, kernel::fast8_tokens - 1, rng);
  const std::vector<float> few_exact = few.template run<kernel::Scalar>(0, 16, false);
  CHECK((fast8_of(few) == few_exact));
  if constexpr (F::block_size < kernel::fast8_step) {
    Product<F> odd(16, chunk_blocks<F> + std::max<std::size_t>(1, 32 / F::block_size), 33, rng);
    const std::vector<float> odd_exact = odd.template run<kernel::Scalar>(0, 16, false);
    CHECK((fast8_of(odd) == odd_exact));
  }
}
TEST_CASE_TEMPLATE_APPLY(close, test::Fast8Formats);

TEST_CASE_TEMPLATE("floats of 16 bits are rounded as activations are", F, format::F16, format::BF16) {
  CounterRng rng(7);
  constexpr std::size_t n = kernel::fast8_tokens;
  Product<F> product(n, 512, 1, rng);
  test::Activations rows(n, 512);
  for (std::size_t i = 0; i < rows.values.size(); ++i) F::decode(product.blocks[i], &rows.values[i]);
  rows.fast8_from = 1;
  rows.quantize();
  const kernel::QuantizedRows expected = rows.quantized();
  const tensor::Matrix<F> w(product.blocks.data(), n, 512);
  for (std::size_t r = 0; r < n; ++r) {
    for (std::size_t c = 0; c < 2; ++c) {
      const auto block = kernel::requantise<F>(w, r, c);
      CHECK(std::equal(block.code, block.code + 256, expected.row_codes(r) + 256 * c));
      CHECK(block.d == expected.row_scales(r)[8 * c]);
    }
  }
}

TEST_CASE_TEMPLATE("floats that are not finite spoil their rows, zeros make zeros", F, format::F16,
                   format::BF16) {
  CounterRng rng(8);
  for (const float bad : {inf, -inf, std::numeric_limits<float>::quiet_NaN()}) {
    Product<F> product(3, 256, 17, rng);
    F::encode(&bad, product.blocks[256]);
    product.use_fast8();
    product.check();
    const std::vector<float> y = fast8_of(product);
    CHECK(std::isfinite(y[0]));
    CHECK(y[1] != y[1]);
    CHECK(std::isfinite(y[2]));
  }
  Product<F> none(3, 256, 17, rng);
  for (auto& each : none.blocks) each = {};
  none.use_fast8();
  none.check();
  CHECK(fast8_of(none)[0] == 0);
}

TEST_CASE("F32 is not rounded, and activations without codes round nothing") {
  CounterRng rng(9);
  Product<format::F32> wide(8, 256, 17, rng);
  const std::vector<float> exact = wide.template run<kernel::Scalar>(0, 8, false);
  CHECK(fast8_of(wide) == exact);
  Product<format::F16> half(8, 256, 17, rng);
  const std::vector<float> half_exact = half.template run<kernel::Scalar>(0, 8, false);
  std::vector<float> y(17 * 8);
  kernel::MatmulArgs<format::F16> args;
  args.w = {half.blocks.data(), 8, 256};
  args.x = {half.x.view(), {}};
  args.y = {y.data(), 17, 8};
  args.last = 8;
  kernel::Fast8<kernel::Highway>::matmul(args);
  CHECK(y == half_exact);
}

TEST_CASE("a scale that is not finite spoils its rows, one that is tiny makes zeros") {
  CounterRng rng(4);
  for (const float d : {inf, -inf, std::numeric_limits<float>::quiet_NaN()}) {
    Product<format::Q4_K> product(3, 2, 17, rng);
    product.blocks[3].d = to_half(d);
    product.use_fast8();
    product.check();
    const std::vector<float> y = fast8_of(product);
    CHECK(std::isfinite(y[0]));
    CHECK(y[1] != y[1]);
  }
  Product<format::MXFP4> tiny(3, 8, 17, rng);
  for (auto& block : tiny.blocks) block.exponent = 0;
  tiny.use_fast8();
  tiny.check();
  CHECK(fast8_of(tiny)[0] == 0);
}

TEST_CASE("the policy quantises and multiplies as activations that say so") {
  CounterRng rng(6);
  Product<format::Q5_K> product(9, 2, 20, rng);
  using K = kernel::Fast8<kernel::Highway>;
  static_assert(Kernels<K>);
  K::quantize({product.x.view(), product.x.quantized(), 0, product.x.n});
  const std::vector<float> y = product.template run<K>(0, 9, false);
  CHECK(y == fast8_of(product));
}

TEST_CASE("activations that are not finite spoil their token") {
  CounterRng rng(5);
  Product<format::Q6_K> product(9, 2, 20, rng);
  product.x.values[product.cols] = -inf;
  product.use_fast8();
  product.check();
  const std::vector<float> y = fast8_of(product);
  CHECK(std::isfinite(y[0]));
  CHECK(y[9] != y[9]);
}

}  // namespace
}  // namespace mica::fast8_test
