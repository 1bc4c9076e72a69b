// SPDX-License-Identifier: Apache-2.0
//
// The kernels by xsimd against the specification: every bit, for the instruction set this file is compiled
// with.

#ifdef MICA_HAS_XSIMD
#include "mica/kernel/xsimd.hpp"

#include "kernel/chunk.hpp"
#include "kernel/formats.hpp"
#include "kernel/product.hpp"
#include "mica/exec/detail/denormals.hpp"

#include <limits>

namespace mica::xsimd_test {

/// Vectors of 128 bits, with the dots of x86 and with those of operations of xsimd alone, as Arm has them.
#if defined(__SSE4_2__)
struct WithoutDots : ::xsimd::fma3<::xsimd::sse4_2> {};
#endif

}  // namespace mica::xsimd_test

#if defined(__SSE4_2__)
namespace xsimd::types {
XSIMD_DECLARE_SIMD_REGISTER_ALIAS(mica::xsimd_test::WithoutDots, fma3<sse4_2>);
}  // namespace xsimd::types
template <>
inline constexpr mica::kernel::xsimd::Dots mica::kernel::xsimd::dots_of<mica::xsimd_test::WithoutDots> =
    mica::kernel::xsimd::Dots::others;
#endif

namespace mica::xsimd_test {
namespace {

using kernel::Xsimd;
static_assert(!kernel::reads_rounded<Xsimd>);  // such rows are packed for it
#if defined(__SSE4_2__)
using Narrow = kernel::Fallback<kernel::XsimdVectors<::xsimd::fma3<::xsimd::sse4_2>>, kernel::Scalar>;
using Portable = kernel::Fallback<kernel::XsimdVectors<WithoutDots>, kernel::Scalar>;
#else
using Narrow = Xsimd;
using Portable = Xsimd;
#endif

/// One format of each shape of panels, and of each way in which codes are packed.
using EachShape = std::tuple<format::Q4_K, format::Q5_K, format::Q6_K, format::Q3_K, format::Q2_K,
                             format::Q8_0, format::Q4_0, format::Q5_1, format::IQ4_XS, format::MXFP4,
                             format::TQ2_0, format::NVFP4, format::IQ2_XS>;

/// Odd numbers of rows, blocks and tokens, slices of rows, and sums.
template <class K, class F>
void check_products() {
  CounterRng rng(1);
  for (const std::size_t rows : std::initializer_list<std::size_t>{1, 16, 19, 37}) {
    const std::size_t width = F::block_size == 256 ? 1 + rows % 3 : 1 + rows % 13;
    for (const std::size_t tokens : std::initializer_list<std::size_t>{1, 2, 3, 7, 17}) {
      test::Product<F> product(rows, width, tokens, rng);
      product.template check_kernels<K>(0, rows, false);
      product.template check_kernels<K>(rows / 3, rows - rows / 5, true);
    }
  }
}

TEST_CASE_TEMPLATE_DEFINE("products by xsimd equal the specification", F, products) {
  check_products<Xsimd, F>();
}
TEST_CASE_TEMPLATE_APPLY(products, test::VectorFormats);

TEST_CASE_TEMPLATE_DEFINE("products in vectors of 128 bits equal the specification", F, narrow) {
  check_products<Narrow, F>();
}
TEST_CASE_TEMPLATE_APPLY(narrow, EachShape);

TEST_CASE_TEMPLATE_DEFINE("products without dots of the machine equal the specification", F, portable) {
  check_products<Portable, F>();
}
TEST_CASE_TEMPLATE_APPLY(portable, EachShape);

TEST_CASE_TEMPLATE("neither the end of a strip of rows nor of a block of tokens shows in a product by xsimd",
                   F, format::Q4_K, format::Q8_0, format::Q6_K) {
  CounterRng rng(6);
  for (const std::size_t tokens : std::initializer_list<std::size_t>{47, 48, 49, 95, 96, 97, 193})
    test::Product<F>(18, 2, tokens, rng).template check_kernels<Xsimd>(0, 18, false);
  test::Product<F> tall(275, 2, 2, rng);
  tall.template check_kernels<Xsimd>(0, 275, false);
  tall.template check_kernels<Xsimd>(13, 272, true);
  test::Product<F> wide(17, 100, 1, rng);  // more chunks than are gathered together
  wide.template check_kernels<Xsimd>(0, 17, false);
}

TEST_CASE_TEMPLATE_DEFINE("the largest codes and scales stay exact by xsimd", F, largest) {
  CounterRng rng(7);
  for (const int byte : {0x00, 0x7F, 0x80, 0xFF}) {
    test::Product<F> product(17, 2, 3, rng);
    for (auto& block : product.blocks) test::fill_bytes<F>(block, byte);
    for (std::size_t i = 0; i < product.x.values.size(); ++i)
      product.x.values[i] = (i / 3) % 5 == 0 ? -2.0f : 2.0f;
    product.prepare();
    product.template check_kernels<Xsimd>(0, 17, false);
    product.template check_kernels<Narrow>(0, 17, false);
    product.template check_kernels<Portable>(0, 17, false);
  }
}
TEST_CASE_TEMPLATE_APPLY(largest, test::IntegerFormats);

TEST_CASE_TEMPLATE("a NaN or an infinity spoils its token and no other by xsimd", F, format::Q4_K,
                   format::Q8_0) {
  CounterRng rng(8);
  for (const std::size_t tokens : std::initializer_list<std::size_t>{2, 18}) {
    test::Product<F> product(9, 2, tokens, rng);
    product.x.values[0] = std::numeric_limits<float>::quiet_NaN();
    product.x.values[product.cols + product.cols / 2] = -std::numeric_limits<float>::infinity();
    product.prepare();
    product.template check_kernels<Xsimd>(0, 9, false);
  }
}

TEST_CASE_TEMPLATE("products of many tokens that round weights are those of the specification", F,
                   format::Q4_K, format::F16) {
  CounterRng rng(9);
  test::Product<F> product(19, F::block_size == 1 ? 512 : 2, 17, rng);
  product.use_fast8();
  product.template check_kernels<Xsimd>(3, 19, true);
}

/// Codes, scales and sums of 37 rows, as floats.
template <class K>
std::vector<float> quantized(test::Activations& x) {
  K::quantize({x.view(), x.quantized(), 0, x.n});
  std::vector<float> all(x.codes.begin(), x.codes.end());
  all.insert(all.end(), x.scales.begin(), x.scales.end());
  all.insert(all.end(), x.sums.begin(), x.sums.end());
  return all;
}

TEST_CASE("activations quantised by xsimd equal the specification") {
  CounterRng rng(10);
  for (const std::size_t fast8_from : {0, 1}) {
    test::Activations x(37, 256);
    x.fast8_from = fast8_from;
    test::fill_noise(x.values, rng, 3);
    for (std::size_t i = 0; i < 32; ++i) {
      x.values[256 * 1 + i] = 0;
      x.values[256 * 2 + i] = 1e-31f;
      x.values[256 * 3 + i] = static_cast<float>(i) + 0.5f;  // ties
      x.values[256 * 4 + i] = -std::numeric_limits<float>::max();
    }
    x.values[256 * 5 + 40] = std::numeric_limits<float>::quiet_NaN();
    x.values[256 * 6 + 255] = -std::numeric_limits<float>::infinity();
    const std::vector<float> expected = quantized<kernel::Scalar>(x);
    CHECK(test::differences(expected.data(), quantized<Xsimd>(x).data(), expected.size()) == 0);
    CHECK(test::differences(expected.data(), quantized<Narrow>(x).data(), expected.size()) == 0);
  }
}

TEST_CASE_TEMPLATE("every number of sixteen bits is a weight to xsimd as to the specification", F,
                   format::F16, format::BF16) {
  const exec::FlushDenormals flush;  // as the threads of an executor
  CounterRng rng(5);
  // Sixteen numbers a row, whose sum shows the one that counts.
  test::Product<F> product(1 << 12, 16, 1, rng);
  std::fill_n(product.x.values.data(), 16, 1.0f);
  for (std::size_t place = 0; place < 16; ++place) {
    for (std::size_t i = 0; i < product.blocks.size(); ++i)
      product.blocks.data()[i].bits = static_cast<std::uint16_t>(i % 16 == place ? i / 16 * 16 + place : 0);
    product.template check_kernels<Xsimd>(0, 1 << 12, false);
  }
}

TEST_CASE("a row longer than the decoder's buffer by xsimd equals the specification") {
  CounterRng rng(2);
  test::Product<format::F16>(2, 2077, 3, rng).check_kernels<Xsimd>(0, 2, false);
}

TEST_CASE_TEMPLATE("attention by xsimd equals the specification", E, format::F16, format::Q8_0, format::F32,
                   format::BF16) {
  CounterRng rng(3);
  for (const std::size_t head_dim : std::initializer_list<std::size_t>{3, 20, 64}) {
    test::Chunk<E> chunk(head_dim, {{0, 37}, {0, 38}, {5, 5}, {20, 256}}, rng);
    chunk.template check_kernels<Xsimd>();
    chunk.softcap = 3;
    chunk.template check_kernels<Xsimd>();
  }
}

TEST_CASE("norm, rotation and gates by xsimd equal the specification") {
  CounterRng rng(4);
  for (const std::size_t n : std::initializer_list<std::size_t>{6, 32, 96, 130}) {
    std::vector<float> x(n), weight(n), cos(n / 2), sin(n / 2);
    for (auto* v : {&x, &weight, &cos, &sin}) test::fill_noise(*v, rng, 3);
    const auto run = [&](auto kernels) {
      using K = decltype(kernels);
      std::vector<float> y(11 * n);
      const MatrixView<float> rows(y.data(), 11, n);
      K::rms_norm({{x.data(), 1, n}, weight.data(), 1e-5f, rows.rows(0, 1), 0, 1});
      K::rms_norm({{x.data(), 1, n}, nullptr, 1e-5f, rows.rows(1, 1), 0, 1});
      std::size_t r = 2;
      for (const auto kind : {kernel::Gate::silu, kernel::Gate::gelu, kernel::Gate::gelu_erf,
                              kernel::Gate::sigmoid, kernel::Gate::clamped})
        K::gated({kind, {x.data(), 1, n}, {weight.data(), 1, n}, rows.rows(r++, 1), 0, 1});
      K::gated({kernel::Gate::silu, {x.data(), 1, n}, {}, rows.rows(r++, 1), 0, 1});
      K::layer_norm({{x.data(), 1, n}, weight.data(), nullptr, 1e-5f, rows.rows(r++, 1), 0, 1});
      for (const auto pairs : {kernel::RopePairs::halves, kernel::RopePairs::adjacent}) {
        const auto row = rows.rows(r++, 1);
        std::copy(x.begin(), x.end(), row.data());
        K::rope({row, n, n, pairs, {cos.data(), 1, n / 2}, {sin.data(), 1, n / 2}, 0, 1});
      }
      return y;
    };
    CHECK(test::differences(run(kernel::Scalar{}).data(), run(Xsimd{}).data(), 11 * n) == 0);
  }
}

}  // namespace
}  // namespace mica::xsimd_test
#endif
