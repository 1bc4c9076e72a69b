// SPDX-License-Identifier: Apache-2.0
//
// quantize, rms_norm, rope and gated of the vector kernels against the specification, and the specification of exp
// against the standard library.

#include "kernel/guarded.hpp"
#include "kernel/targets.hpp"
#include "mica/kernel/highway.hpp"
#include "mica/kernel/scalar.hpp"

#include <cmath>
#include <limits>

namespace mica {
namespace {

using test::Guarded;

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

TEST_CASE("the gated activation equals the specification, special values included") {
  CounterRng rng(4);
  for (const std::size_t n : sizes) {
    Guarded<float> gate(n), up(n), expected(n), actual(n);
    test::fill_noise(gate, rng, 40);
    test::fill_noise(up, rng);
    const float special[] = {nan,    inf,   -inf,   0.0f,   -0.0f,  87.0f,
                             -87.0f, 88.5f, -88.5f, 1e-40f, 200.0f, -200.0f};
    for (std::size_t i = 0; i < n && i < std::size(special); ++i) gate[n - 1 - i] = special[i];
    const auto args = [&](Guarded<float>& y) {
      return kernel::GatedArgs{
          kernel::Gate::silu, {gate.data(), 1, n}, {up.data(), 1, n}, {y.data(), 1, n}, 0, 1};
    };
    kernel::Scalar::gated(args(expected));
    test::for_each_target([&] {
      kernel::Highway::gated(args(actual));
      INFO("width " << n);
      CHECK(test::differences(expected.data(), actual.data(), n) == 0);
    });
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
}  // namespace mica
