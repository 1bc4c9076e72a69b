// SPDX-License-Identifier: Apache-2.0
//
// The kernels by xsimd against the specification: every bit, for the instruction set this file is compiled with.

#ifdef MICA_HAS_XSIMD
#include "mica/kernel/xsimd.hpp"

#include "kernel/chunk.hpp"
#include "kernel/product.hpp"
#include "mica/exec/detail/denormals.hpp"

namespace mica::xsimd_test {
namespace {

using kernel::Xsimd;

TEST_CASE_TEMPLATE("products by xsimd equal the specification", F, format::F32, format::F16, format::BF16,
                   format::Q8_0, format::Q4_K) {
  CounterRng rng(1);
  for (const std::size_t width : std::initializer_list<std::size_t>{1, 3, 19}) {
    for (const std::size_t tokens : std::initializer_list<std::size_t>{1, 2, 17}) {
      test::Product<F>(5, width, tokens, rng).template check_kernels<Xsimd>(0, 5, false);
      test::Product<F>(5, width, tokens, rng).template check_kernels<Xsimd>(1, 4, true);
    }
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
      std::vector<float> y(8 * n);
      const MatrixView<float> rows(y.data(), 8, n);
      K::rms_norm({{x.data(), 1, n}, weight.data(), 1e-5f, rows.rows(0, 1), 0, 1});
      K::rms_norm({{x.data(), 1, n}, nullptr, 1e-5f, rows.rows(1, 1), 0, 1});
      std::size_t r = 2;
      for (const auto kind :
           {kernel::Gate::silu, kernel::Gate::gelu, kernel::Gate::sigmoid, kernel::Gate::clamped})
        K::gated({kind, {x.data(), 1, n}, {weight.data(), 1, n}, rows.rows(r++, 1), 0, 1});
      for (const auto pairs : {kernel::RopePairs::halves, kernel::RopePairs::adjacent}) {
        const auto row = rows.rows(r++, 1);
        std::copy(x.begin(), x.end(), row.data());
        K::rope({row, n, n, pairs, {cos.data(), 1, n / 2}, {sin.data(), 1, n / 2}, 0, 1});
      }
      return y;
    };
    CHECK(test::differences(run(kernel::Scalar{}).data(), run(Xsimd{}).data(), 8 * n) == 0);
  }
}

}  // namespace
}  // namespace mica::xsimd_test
#endif
