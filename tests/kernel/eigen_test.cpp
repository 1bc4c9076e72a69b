// SPDX-License-Identifier: Apache-2.0
//
// The specification against the oracle: what the kernels compute is the product, the norm, the softmax that they claim.

#ifdef MICA_HAS_EIGEN
#include "mica/kernel/eigen.hpp"

#include "kernel/chunk.hpp"
#include "kernel/product.hpp"

#include <cmath>

namespace mica::eigen_test {
namespace {

using kernel::Scalar;
using Oracle = kernel::Eigen;

/// The largest difference, relative to the largest number.
double error(const std::vector<float>& a, const std::vector<float>& b) {
  double largest = 1e-30, worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::fabs(static_cast<double>(b[i])));
    worst = std::max(worst, std::fabs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  }
  return worst / largest;
}

TEST_CASE_TEMPLATE("a product is the dense product of decoded weights and decoded activations", F,
                   format::Q4_K, format::Q6_K, format::Q8_0, format::Q4_0, format::F32, format::F16,
                   format::BF16) {
  CounterRng rng(1);
  for (const std::size_t blocks : std::initializer_list<std::size_t>{3, 8}) {
    test::Product<F> product(12, blocks, 5, rng);
    CHECK(error(product.template run<Scalar>(2, 11, true), product.template run<Oracle>(2, 11, true)) < 2e-6);
  }
}

TEST_CASE_TEMPLATE("attention is a softmax of scaled dots over values", E, format::F16, format::Q8_0,
                   format::F32, format::BF16) {
  CounterRng rng(2);
  test::Chunk<E> chunk(40, {{0, 90}, {7, 60}, {9, 9}}, rng);
  SUBCASE("scores as they are") {}
  SUBCASE("capped scores") { chunk.softcap = 5; }
  for (const bool empty_state : {true, false}) {
    const auto a = chunk.template run<Scalar>(empty_state), b = chunk.template run<Oracle>(empty_state);
    // Queries of 15 bits: a score of about ten is off by less than a thousandth.
    const double tolerance = std::is_same_v<E, format::Q8_0> ? 2e-3 : 2e-6;
    CHECK(error(a.p, b.p) < tolerance);
    CHECK(error(a.sum, b.sum) < tolerance);
    CHECK(error(a.out, b.out) < tolerance);
    CHECK(error(a.total, b.total) < tolerance);
  }
}

TEST_CASE("norm, rotation and gate agree with their formulas") {
  CounterRng rng(3);
  const std::size_t n = 96;
  std::vector<float> x(n), weight(n), cos(n / 2), sin(n / 2);
  for (auto* v : {&x, &weight, &cos, &sin}) test::fill_noise(*v, rng, 3);
  const auto run = [&](auto kernels) {
    using K = decltype(kernels);
    std::vector<float> y(4 * n);
    const MatrixView<float> rows(y.data(), 4, n);
    K::rms_norm({{x.data(), 1, n}, weight.data(), 1e-5f, rows.rows(0, 1), 0, 1});
    K::gated({kernel::Gate::silu, {x.data(), 1, n}, {weight.data(), 1, n}, rows.rows(1, 1), 0, 1});
    for (const auto pairs : {kernel::RopePairs::halves, kernel::RopePairs::adjacent}) {
      const auto row = rows.rows(pairs == kernel::RopePairs::halves ? 2 : 3, 1);
      std::copy(x.begin(), x.end(), row.data());
      K::rope({row, n, n, pairs, {cos.data(), 1, n / 2}, {sin.data(), 1, n / 2}, 0, 1});
    }
    return y;
  };
  CHECK(error(run(Scalar{}), run(Oracle{})) < 1e-6);
}

TEST_CASE("gates, lengths, sums, factors and caps agree with their formulas") {
  CounterRng rng(5);
  const std::size_t n = 96;
  std::vector<float> x(n), u(n);
  for (auto* v : {&x, &u}) test::fill_noise(*v, rng, 3);
  const auto run = [&](auto kernels) {
    using K = decltype(kernels);
    std::vector<float> y(11 * n, 0.5f);
    const MatrixView<const float> g(x.data(), 1, n), up(u.data(), 1, n);
    const auto row = [&](std::size_t r) { return MatrixView<float>(y.data() + r * n, 1, n); };
    std::size_t r = 0;
    for (const auto kind : {kernel::Gate::silu, kernel::Gate::gelu, kernel::Gate::gelu_erf,
                            kernel::Gate::sigmoid, kernel::Gate::clamped})
      K::gated({kind, g, up, row(r++), 0, 1});
    K::l2_norm({g, 1e-6f, 2.5f, row(r++), 0, 1});
    K::add({g, row(r), 0.3f, 0, 1});
    K::scale({row(r++), 0.7f, 0, 1});
    std::copy(x.begin(), x.end(), row(r).data());
    K::softcap({row(r++), 2.0f, 0, 1});
    K::rms_norm({g, nullptr, 1e-5f, row(r++), 0, 1});
    K::layer_norm({g, u.data(), x.data(), 1e-5f, row(r++), 0, 1});
    K::gated({kernel::Gate::gelu_erf, g, {}, row(r), 0, 1});
    return y;
  };
  const auto expected = run(Scalar{}), oracle = run(Oracle{});
  for (std::size_t r = 0; r < 11; ++r) {
    const auto row = [&](const std::vector<float>& y) {
      return std::vector<float>(y.begin() + static_cast<long>(r * n),
                                y.begin() + static_cast<long>((r + 1) * n));
    };
    INFO("row " << r);
    CHECK(error(row(expected), row(oracle)) < 1e-6);
  }
}

TEST_CASE("convolution and delta rule agree with their formulas") {
  CounterRng rng(6);
  const std::size_t tokens = 11, k_dim = 24, v_dim = 40;
  std::vector<float> q(tokens * k_dim), k(tokens * k_dim), v(tokens * v_dim), gates(2 * tokens),
      weight(4 * v_dim);
  for (auto* numbers : {&q, &k, &v, &weight}) test::fill_noise(*numbers, rng);
  for (float& gate : gates) gate = static_cast<float>(rng.uniform());
  const MatrixView<float> keys(k.data(), tokens, k_dim);
  Scalar::l2_norm({keys, 1e-6f, 1, keys, 0, tokens});
  const auto run = [&](auto kernels) {
    using K = decltype(kernels);
    std::vector<float> all((2 * tokens + k_dim + 3) * v_dim, 0.25f);
    const MatrixView<float> rows(all.data(), 2 * tokens + k_dim + 3, v_dim);
    const auto convolved = rows.rows(0, tokens), out = rows.rows(tokens, tokens);
    const auto state = rows.rows(2 * tokens, k_dim), before = rows.rows(2 * tokens + k_dim, 3);
    const MatrixView<const float> values(v.data(), tokens, v_dim);
    K::causal_conv({values, weight.data(), 4, before, convolved, 1, v_dim - 2});
    K::delta_rule({{q.data(), tokens, k_dim},
                   keys,
                   values,
                   gates.data(),
                   gates.data() + 1,
                   2,
                   state,
                   out,
                   3,
                   v_dim - 1});
    return all;
  };
  CHECK(error(run(Scalar{}), run(Oracle{})) < 1e-6);
}

TEST_CASE("quantized activations are the oracle's, and within half a step of the numbers") {
  CounterRng rng(4);
  test::Activations a(3, 64), b(3, 64);
  test::fill_noise(a.values, rng);
  a.values[5] = std::numeric_limits<float>::quiet_NaN();
  std::fill_n(a.values.data() + 32, 32, 0.0f);
  a.quantize();
  Oracle::quantize({a.view(), b.quantized(), 0, 3});
  CHECK(std::memcmp(a.codes.data(), b.codes.data(), a.codes.size()) == 0);
  CHECK(std::memcmp(a.sums.data(), b.sums.data(), a.sums.size() * sizeof(std::int16_t)) == 0);
  CHECK(test::differences(a.scales.data(), b.scales.data(), a.scales.size()) == 0);
  for (std::size_t i = 32; i < a.values.size(); ++i) {
    const float scale = a.scales[i / 32];
    CHECK(std::fabs(scale * static_cast<float>(a.codes[i]) - a.values[i]) <= scale * 0.50001f);
  }
}

}  // namespace
}  // namespace mica::eigen_test
#endif
