// SPDX-License-Identifier: Apache-2.0
//
// What is done to rows, by the vector kernels against the specification, and the specification against formulas and the
// standard library.

#include "kernel/strided.hpp"
#include "kernel/targets.hpp"
#include "mica/kernel/highway.hpp"
#include "mica/kernel/scalar.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace mica::elementwise_test {
namespace {

using test::Guarded;
using test::Strided;

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr std::size_t sizes[] = {1, 7, 8, 15, 16, 17, 31, 33, 48, 257, 1000};

TEST_CASE("quantized activations equal the specification, special values included") {
  CounterRng rng(1);
  test::Activations a(4, 32 * 9), b(4, 32 * 9);
  test::fill_noise(a.values, rng, 3);
  float* const x = a.values.data();
  x[3] = nan;
  x[32 + 31] = inf;
  std::fill_n(x + 64, 32, 0.0f);
  std::fill_n(x + 96, 32, -0.0f);
  std::fill_n(x + 128, 32, 1e-31f);
  std::fill_n(x + 160, 32, 3e38f);
  std::fill_n(x + 192, 32, -1.5e-30f);
  for (std::size_t i = 0; i < 32; ++i)
    x[224 + i] = static_cast<float>(i) + 0.5f - 16;  // ties: 127 / 15.5 * x
  x[224] = -127;
  a.quantize();
  test::for_each_target([&] {
    kernel::Highway::quantize({a.view(), b.quantized(), 0, 4});
    CHECK(std::memcmp(a.codes.data(), b.codes.data(), a.codes.size()) == 0);
    CHECK(test::differences(a.scales.data(), b.scales.data(), a.scales.size()) == 0);
    CHECK(std::memcmp(a.sums.data(), b.sums.data(), a.sums.size() * sizeof(std::int16_t)) == 0);
  });
}

TEST_CASE("quantized activations are what the contract says") {
  test::Activations a(1, 32);
  for (std::size_t i = 0; i < 32; ++i) a.values[i] = i == 0 ? -254.0f : i == 1 ? 3.0f : i == 16 ? 5.0f : 0.0f;
  a.quantize();
  CHECK(a.scales[0] == 2.0f);
  CHECK(a.codes[0] == -127);
  CHECK(a.codes[1] == 2);   // 1.5 to even
  CHECK(a.codes[16] == 2);  // 2.5 to even
  CHECK(a.sums[0] == -125);
  CHECK(a.sums[1] == 2);
}

TEST_CASE("the norm equals the specification for any width") {
  CounterRng rng(2);
  for (const std::size_t n : sizes) {
    Guarded<float> x(3 * n), weight(n), expected(3 * n), actual(3 * n);
    test::fill_noise(x, rng);
    test::fill_noise(weight, rng);
    const auto args = [&](Guarded<float>& y) {
      return kernel::RmsNormArgs{{x.data(), 3, n}, weight.data(), 1e-6f, {y.data(), 3, n}, 1, 3};
    };
    kernel::Scalar::rms_norm(args(expected));
    test::for_each_target([&] {
      kernel::Highway::rms_norm(args(actual));
      INFO("width " << n);
      CHECK(test::differences(expected.data(), actual.data(), 3 * n) == 0);
    });
  }
}

TEST_CASE("the layer norm equals the specification for any width, with a bias and without, in place or not") {
  CounterRng rng(12);
  for (const std::size_t n : sizes) {
    Guarded<float> x(3 * n), weight(n), bias(n), expected(3 * n), actual(3 * n), here(3 * n);
    for (Guarded<float>* numbers : {&x, &weight, &bias}) test::fill_noise(*numbers, rng);
    for (const float* const added :
         {static_cast<const float*>(bias.data()), static_cast<const float*>(nullptr)}) {
      const auto args = [&](Guarded<float>& from, Guarded<float>& y) {
        return kernel::LayerNormArgs{
            {from.data(), 3, n}, weight.data(), added, 1e-6f, {y.data(), 3, n}, 1, 3};
      };
      kernel::Scalar::layer_norm(args(x, expected));
      std::copy_n(x.begin(), n, expected.begin());
      test::for_each_target([&] {
        std::copy(x.begin(), x.end(), here.begin());
        std::copy_n(x.begin(), n, actual.begin());
        kernel::Highway::layer_norm(args(x, actual));
        kernel::Highway::layer_norm(args(here, here));
        INFO("width " << n);
        CHECK(test::differences(expected.data(), actual.data(), 3 * n) == 0);
        CHECK(test::differences(expected.data(), here.data(), 3 * n) == 0);
      });
    }
  }
}

TEST_CASE("the layer norm is its formula") {
  const float x[4] = {1, 2, 3, 6}, weight[4] = {1, 2, 1, -1}, bias[4] = {0, 10, 0, 1};
  float y[4];
  kernel::Scalar::layer_norm({{x, 1, 4}, weight, bias, 0.5f, {y, 1, 4}, 0, 1});
  const double r = 1 / std::sqrt((4.0 + 1 + 0 + 9) / 4 + 0.5);  // around the mean 3
  const double expected[4] = {-2 * r, 10 - 2 * r, 0, 1 - 3 * r};
  for (std::size_t i = 0; i < 4; ++i) CHECK(std::fabs(y[i] - expected[i]) < 1e-6);
  kernel::Scalar::layer_norm({{x, 1, 4}, weight, nullptr, 0.5f, {y, 1, 4}, 0, 1});
  CHECK(std::fabs(y[1] + 2 * r) < 1e-6);
}

TEST_CASE("rotation equals the specification for both pairings and any number of dimensions") {
  CounterRng rng(3);
  for (const auto pairs : {kernel::RopePairs::adjacent, kernel::RopePairs::halves}) {
    for (const std::size_t dims : std::initializer_list<std::size_t>{2, 8, 20, 64, 80, 128}) {
      const std::size_t head_dim = dims + (dims == 64 ? 32 : 0), heads = 3;
      Guarded<float> x(2 * heads * head_dim), cos(dims), sin(dims);
      test::fill_noise(x, rng);
      test::fill_noise(cos, rng);
      test::fill_noise(sin, rng);
      const auto run = [&](auto kernels) {
        Guarded<float> y(x.size());
        std::copy(x.begin(), x.end(), y.begin());
        decltype(kernels)::rope({{y.data(), 2, heads * head_dim},
                                 head_dim,
                                 dims,
                                 pairs,
                                 {cos.data(), 2, dims / 2},
                                 {sin.data(), 2, dims / 2},
                                 0,
                                 2});
        return std::vector<float>(y.begin(), y.end());
      };
      const auto expected = run(kernel::Scalar{});
      test::for_each_target([&] {
        INFO("dims " << dims);
        CHECK(test::differences(expected.data(), run(kernel::Highway{}).data(), x.size()) == 0);
      });
    }
  }
}

TEST_CASE("a quarter turn moves the first of a pair into the second") {
  float x[4] = {1, 2, 3, 4};
  const float cos[2] = {0, 0}, sin[2] = {1, 1};
  kernel::Scalar::rope({{x, 1, 4}, 4, 4, kernel::RopePairs::halves, {cos, 1, 2}, {sin, 1, 2}, 0, 1});
  CHECK(x[0] == -3);
  CHECK(x[2] == 1);
  CHECK(x[3] == 2);
}

constexpr kernel::Gate gates[] = {kernel::Gate::silu, kernel::Gate::gelu, kernel::Gate::gelu_erf,
                                  kernel::Gate::sigmoid, kernel::Gate::clamped};
constexpr float special[] = {nan,    inf,    -inf,    0.0f,  -0.0f, 87.0f, -87.0f, 88.5f, -88.5f,
                             1e-40f, 200.0f, -200.0f, 1e20f, 7.0f,  -7.0f, -1.0f,  7.5f};

/// Numbers for the ends of vectors and for their middle.
void fill_special(Strided& x) {
  for (std::size_t i = 0; i < x.cols && i < std::size(special); ++i)
    x.at(x.rows - 1, x.cols - 1 - i) = special[i];
}

TEST_CASE("every gate equals the specification, special values included, in place or not") {
  CounterRng rng(4);
  for (const std::size_t n : sizes) {
    Strided gate(3, n, 2, rng, 40), up(3, n, 5, rng, 5), out(3, n, 1, rng);
    fill_special(gate);
    if (n > 20) std::copy_n(special, std::size(special), &up.at(1, 0));
    for (const kernel::Gate kind : gates) {
      const auto check = [&](auto in_place) {
        const auto run = [&](auto kernels) {
          Strided g(gate), u(up), y(out);
          auto& written = in_place(g, u, y);
          decltype(kernels)::gated({kind, g.view(), u.view(), written.view(), 1, 3});
          return std::vector<float>(written.numbers.begin(), written.numbers.end());
        };
        const auto expected = run(kernel::Scalar{});
        test::for_each_target([&] {
          INFO("width " << n << ", gate " << static_cast<int>(kind));
          CHECK(test::differences(expected.data(), run(kernel::Highway{}).data(), expected.size()) == 0);
        });
      };
      check([](Strided&, Strided&, Strided& y) -> Strided& { return y; });
      check([](Strided& g, Strided&, Strided&) -> Strided& { return g; });
      check([](Strided&, Strided& u, Strided&) -> Strided& { return u; });
    }
  }
}

TEST_CASE("a gate without another half is the gate times one") {
  CounterRng rng(13);
  for (const std::size_t n : sizes) {
    Strided gate(3, n, 2, rng, 40), ones(3, n, 0, rng), out(3, n, 1, rng);
    std::fill(ones.numbers.begin(), ones.numbers.end(), 1.0f);
    for (const kernel::Gate kind : gates) {
      Strided expected(out), actual(out);
      kernel::Scalar::gated({kind, gate.view(), ones.view(), expected.view(), 1, 3});
      test::for_each_target([&] {
        kernel::Highway::gated({kind, gate.view(), {}, actual.view(), 1, 3});
        INFO("width " << n << ", gate " << static_cast<int>(kind));
        CHECK(test::differences(expected.numbers.data(), actual.numbers.data(), actual.numbers.size()) == 0);
      });
    }
  }
}

TEST_CASE("every gate is its formula within eight roundings and the error of exp") {
  const auto exact = [](kernel::Gate kind, double g, double u) {
    switch (kind) {
      case kernel::Gate::silu:
        return g / (1 + std::exp(-g)) * u;
      case kernel::Gate::gelu:
        return g / 2 * (1 + std::tanh(0.79788456080286536 * (g + 0.044715 * g * g * g))) * u;
      case kernel::Gate::gelu_erf:
        return g / 2 * std::erfc(-g / std::sqrt(2.0)) * u;
      case kernel::Gate::sigmoid:
        return u / (1 + std::exp(-g));
      default:
        break;
    }
    const double x = std::min(g, 7.0), y = std::clamp(u, -7.0, 7.0);
    return x / (1 + std::exp(-1.702 * x)) * (y + 1);
  };
  for (const kernel::Gate kind : gates) {
    for (float g = -4; g < 12;
         g += 0.0137f) {  // the argument of exp is below 12: its own error counts twelve times
      for (const float u : {-9.0f, -0.3f, 0.0f, 2.0f, 8.0f}) {
        float y = 0;
        kernel::Scalar::gated({kind, {&g, 1, 1}, {&u, 1, 1}, {&y, 1, 1}, 0, 1});
        const double expected = exact(kind, g, u);
        INFO("gate " << static_cast<int>(kind) << " of " << g << ", " << u);
        CHECK(std::fabs(y - expected) <= std::fabs(expected) * ((8 + 12 * 5) * 0x1p-24 + 2.4e-7));
      }
    }
  }
}

TEST_CASE("a gate passes on what is not finite") {
  for (const kernel::Gate kind : gates) {
    const auto run = [&](float g, float u) {
      std::vector<float> gate(20, g), up(20, u);
      kernel::Highway::gated({kind, {gate.data(), 1, 20}, {up.data(), 1, 20}, {gate.data(), 1, 20}, 0, 1});
      CHECK(test::same(gate[0], gate[19]));  // in a vector and behind the last one
      return gate[0];
    };
    INFO("gate " << static_cast<int>(kind));
    CHECK(std::isnan(run(nan, 1)));
    CHECK(std::isnan(run(1, nan)));
    const bool limited = kind == kernel::Gate::clamped;
    CHECK(std::isfinite(run(inf, 1)) == (limited || kind == kernel::Gate::sigmoid));
    CHECK(std::isfinite(run(1, -inf)) == limited);
  }
}

TEST_CASE("a norm without a weight is one with a weight of ones") {
  CounterRng rng(5);
  for (const std::size_t n : sizes) {
    Strided x(2, n, 3, rng), y(2, n, 1, rng), expected(y);
    const std::vector<float> ones(n, 1.0f);
    kernel::Scalar::rms_norm({x.view(), ones.data(), 1e-6f, expected.view(), 0, 2});
    test::for_each_target([&] {
      Strided actual(y);
      kernel::Highway::rms_norm({x.view(), nullptr, 1e-6f, actual.view(), 0, 2});
      CHECK(test::differences(expected, actual) == 0);
    });
    kernel::Scalar::rms_norm({x.view(), nullptr, 1e-6f, y.view(), 0, 2});
    CHECK(test::differences(expected, y) == 0);
  }
}

TEST_CASE("the norm to a length equals the specification, rows of zeros and NaN included") {
  CounterRng rng(6);
  for (const std::size_t n : sizes) {
    Strided x(5, n, 3, rng), y(5, n, 1, rng), expected(y);
    std::fill_n(&x.at(1, 0), n, 0.0f);
    std::fill_n(&x.at(2, 0), n, 1e-9f);
    x.at(3, n - 1) = nan;
    kernel::Scalar::l2_norm({x.view(), 1e-6f, 0.25f, expected.view(), 1, 5});
    test::for_each_target([&] {
      Strided actual(y);
      kernel::Highway::l2_norm({x.view(), 1e-6f, 0.25f, actual.view(), 1, 5});
      INFO("width " << n);
      CHECK(test::differences(expected, actual) == 0);
    });
    CHECK(expected.at(0, 0) == y.at(0, 0));  // not in the slice
    CHECK(expected.at(1, 0) == 0);
    CHECK(std::isnan(expected.at(3, 0)));
    double squares = 0;
    for (std::size_t k = 0; k < n; ++k) squares += std::pow(static_cast<double>(x.at(4, k)), 2);
    // A chain of n / 16 and four levels of the tree, halved by the root; eps, the root, the quotient, the product.
    const double bound = (static_cast<double>(n / 16 + 5) / 2 + 4) * 0x1p-24;
    for (std::size_t k = 0; k < n; ++k) {
      const double exact =
          static_cast<double>(x.at(4, k)) * 0.25 / std::sqrt(squares + static_cast<double>(1e-6f));
      CHECK(std::fabs(expected.at(4, k) - exact) <= std::fabs(exact) * bound);
    }
  }
}

TEST_CASE("sums, factors and caps equal the specification") {
  CounterRng rng(7);
  for (const std::size_t n : sizes) {
    Strided x(3, n, 2, rng, 30), y(3, n, 4, rng);
    fill_special(x);
    const auto run = [&](auto kernels) {
      using K = decltype(kernels);
      Strided sum(y), product(x), bent(x);
      K::add({x.view(), sum.view(), 0.37f, 1, 3});
      K::scale({product.view(), 0.37f, 1, 3});
      K::softcap({bent.view(), 30.0f, 1, 3});
      std::vector<float> all(sum.numbers.begin(), sum.numbers.end());
      all.insert(all.end(), product.numbers.begin(), product.numbers.end());
      all.insert(all.end(), bent.numbers.begin(), bent.numbers.end());
      return all;
    };
    const auto expected = run(kernel::Scalar{});
    test::for_each_target([&] {
      INFO("width " << n);
      CHECK(test::differences(expected.data(), run(kernel::Highway{}).data(), expected.size()) == 0);
    });
  }
}

TEST_CASE("sums round once, factors round once, caps are tanh within 6e-7 of the cap") {
  float x = 0.1f, y = 0.7f;
  kernel::Scalar::add({{&x, 1, 1}, {&y, 1, 1}, 3.3f, 0, 1});
  CHECK(y == static_cast<float>(static_cast<double>(0.1f) * static_cast<double>(3.3f) +
                                static_cast<double>(0.7f)));
  kernel::Scalar::scale({{&x, 1, 1}, 3.3f, 0, 1});
  CHECK(x == 0.1f * 3.3f);
  for (const float cap : {1.0f, 30.0f, 50.0f}) {
    for (float score = -400; score < 400; score += 0.317f) {
      float bent = score;
      kernel::Scalar::softcap({{&bent, 1, 1}, cap, 0, 1});
      CHECK(std::fabs(bent - cap * std::tanh(static_cast<double>(score) / cap)) <= 6e-7 * cap);
    }
  }
}

TEST_CASE("exp is within two units in the last place of the standard library") {
  for (float x = -87.0f; x <= 88.0f; x += 0.00731f) {
    const double exact = std::exp(static_cast<double>(x));
    CHECK(std::fabs(kernel::exp(x) - exact) <= exact * 2.4e-7);
  }
  CHECK(kernel::exp(-87.5f) == 0.0f);
  CHECK(kernel::exp(0.0f) == 1.0f);
  CHECK(kernel::exp(1000.0f) == kernel::exp(88.0f));
  CHECK(kernel::exp(nan) != kernel::exp(nan));
}

}  // namespace
}  // namespace mica::elementwise_test
