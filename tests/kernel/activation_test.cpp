// SPDX-License-Identifier: Apache-2.0
//
// The functions made of the exponential against the standard library in double precision. A rounding is 2^-24 of its
// result; exp itself is within 2.4e-7 (elementwise_test.cpp). The bounds are sums of these.

#include "mica/kernel/activation.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace mica::activation_test {
namespace {

constexpr double rounding = 0x1p-24, exp_error = 2.4e-7;
constexpr double smallest = 1e-36;  // exp ends at -87 and at 88: 120 / exp(88) is what may be left of nothing
constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

/// Calls f for numbers of both signs, near zero and up to 120.
template <class F>
void for_numbers(F&& f) {
  for (float x = -120; x <= 120; x += 0.01173f) f(x);
  for (float x = 1e-20f; x < 1; x *= 1.37f) {
    f(x);
    f(-x);
  }
}

/// How far number / (1 + exp(z)) may be off, in relation to itself, when z is off by `z_error` of itself.
double logistic_error(double z, double z_error) {
  return (std::fabs(z) * z_error + exp_error) / (1 + std::exp(-z)) + 3 * rounding;
}

TEST_CASE("sigmoid and silu are within three roundings and the error of exp") {
  for_numbers([](float x) {
    const double exact = 1 / (1 + std::exp(-static_cast<double>(x))), bound = logistic_error(-x, 0);
    INFO("x = " << x);
    CHECK(std::fabs(kernel::sigmoid(x) - exact) <= exact * bound + smallest);
    CHECK(std::fabs(kernel::silu(x) - x * exact) <= std::fabs(x * exact) * bound + smallest);
  });
}

TEST_CASE("gelu_tanh is the tanh form of GELU, exact to a few units near zero") {
  for_numbers([](float number) {
    const double x = number, inner = 0.79788456080286536 * (x + 0.044715 * x * x * x);
    const double exact = x / (1 + std::exp(-2 * inner));
    // Five roundings before exp: the square, its multiple with its constant, the sum, the product.
    const double bound = logistic_error(-2 * inner, 5 * rounding);
    INFO("x = " << x);
    CHECK(std::fabs(kernel::gelu_tanh(number) - exact) <= std::fabs(exact) * bound + smallest);
    if (std::fabs(x) < 0.01) CHECK(std::fabs(kernel::gelu_tanh(number) - exact) <= std::fabs(exact) * 3e-7);
    if (x > 10) CHECK(kernel::gelu_tanh(number) == number);
    if (x < -10.1) CHECK(std::fabs(kernel::gelu_tanh(number)) < smallest);
  });
  CHECK(kernel::gelu_tanh(1e30f) == 1e30f);
}

TEST_CASE("gelu_erf is within 8e-8 and two roundings of the exact form, and within 4e-6 of a small result") {
  for_numbers([](float number) {
    const double x = number, exact = x * std::erfc(-x / std::sqrt(2.0)) / 2;
    const double error = std::fabs(kernel::gelu_erf(number) - exact);
    INFO("x = " << x);
    CHECK(error <= 8e-8 + std::fabs(exact) * 2 * rounding);
    if (x >= -6) CHECK(error <= std::fabs(exact) * 4e-6);
    if (x > 6) CHECK(kernel::gelu_erf(number) == number);
    if (x < -6) CHECK(kernel::gelu_erf(number) == 0);
  });
  CHECK(kernel::gelu_erf(inf) == inf);
  CHECK(std::isnan(kernel::gelu_erf(-inf)));
}

TEST_CASE("quick_exp is within 1.1e-4 of itself and ends where exp does") {
  for (float x = 0; x > -87; x -= 0.01173f) {
    const double exact = std::exp(static_cast<double>(x));
    INFO("x = " << x);
    CHECK(std::fabs(kernel::quick_exp(x) - exact) <= exact * (1.02e-4 + 88 * rounding));
  }
  CHECK(kernel::quick_exp(0) == 1);
  CHECK(kernel::quick_exp(-87.01f) == 0);
  CHECK(kernel::quick_exp(-inf) == 0);
}

TEST_CASE("tanh is within 5e-7 and ends at one") {
  for_numbers([](float x) {
    INFO("x = " << x);
    CHECK(std::fabs(kernel::tanh(x) - std::tanh(static_cast<double>(x))) <= 5e-7);
    CHECK(std::fabs(kernel::tanh(x)) <= 1);
  });
  CHECK(kernel::tanh(inf) == 1);
  CHECK(kernel::tanh(-inf) == -1);
  CHECK(kernel::tanh(0) == 0);
}

TEST_CASE("softplus is within 6e-7 of itself, small results included") {
  for_numbers([](float x) {
    const double exact = std::max<double>(x, 0) + std::log1p(std::exp(-std::fabs(static_cast<double>(x))));
    INFO("x = " << x);
    CHECK(std::fabs(kernel::softplus(x) - exact) <= exact * 6e-7 + smallest);
    if (x > 20) CHECK(kernel::softplus(x) == x);
  });
  CHECK(kernel::softplus(inf) == inf);
  CHECK(kernel::softplus(-inf) == 0);
}

TEST_CASE("functions of NaN are NaN") {
  for (const float y :
       {kernel::exp(nan), kernel::sigmoid(nan), kernel::silu(nan), kernel::gelu_tanh(nan),
        kernel::gelu_erf(nan), kernel::quick_exp(nan), kernel::tanh(nan), kernel::softplus(nan)}) {
    CHECK(y != y);
  }
}

}  // namespace
}  // namespace mica::activation_test
