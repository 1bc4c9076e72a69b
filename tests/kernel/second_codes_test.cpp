// SPDX-License-Identifier: Apache-2.0

#include "mica/kernel/second_codes.hpp"

#include "mica/base/rng.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <span>
#include <vector>

namespace mica::test::second_codes_test {
namespace {

/// A row of activations and its codes.
struct Row {
  std::vector<float> x;
  std::vector<std::int8_t> codes;
  std::vector<float> scales;
  std::vector<std::int16_t> sums;

  explicit Row(std::vector<float> values)
      : x(std::move(values)), codes(x.size()), scales(x.size() / 32), sums(x.size() / 16) {
    kernel::scalar::quantize({{x.data(), 1, x.size()}, view(), 0, 1});
  }
  [[nodiscard]] kernel::QuantizedRows view() {
    return {codes.data(), scales.data(), sums.data(), 1, x.size(), 0};
  }
  [[nodiscard]] double value(std::size_t k) const {
    return static_cast<double>(scales[k / 32]) * static_cast<double>(codes[k]);
  }
};

std::vector<float> random(std::size_t n) {
  CounterRng rng(3);
  std::vector<float> x(n);
  for (float& v : x) v = static_cast<float>(rng.uniform() * 2 - 1);
  return x;
}

}  // namespace

TEST_CASE("a group with one far larger number has second codes, and the sum of both is near the values") {
  auto x = random(96);
  x[40] = -50;
  Row row(x);
  const Row first = row;
  kernel::make_second_codes(x, row.view(), 0);
  for (std::size_t k = 0; k < x.size(); ++k) {
    CAPTURE(k);
    if (k / 32 == 1) {
      // Half a step of the second scale, which is at most half a step of the first one over 127.
      CHECK(std::abs(first.value(k) + row.value(k) - static_cast<double>(x[k])) <
            50.0 / 127 / 2 / 127 / 2 * 1.01);
    } else {
      CHECK(row.codes[k] == 0);
      CHECK(row.scales[k / 32] == 0);
    }
  }
  for (std::size_t group = 0; group < row.sums.size(); ++group) {
    int sum = 0;
    for (std::size_t i = 0; i < 16; ++i) sum += row.codes[group * 16 + i];
    CHECK(row.sums[group] == sum);
  }
}

TEST_CASE("a group of zeros keeps the scale 0, and a group with an infinity a NaN") {
  std::vector<float> x(64);
  x[33] = std::numeric_limits<float>::infinity();
  Row row(x);
  kernel::make_second_codes(x, row.view(), 0);
  CHECK(row.scales[0] == 0);
  CHECK(std::isnan(row.scales[1]));
}

TEST_CASE("a group has second codes where the squares of the others are less than a quarter of the largest one") {
  std::vector<float> x(32);
  x[0] = 127;
  x[1] = 63.2f;  // 63^2 < 127^2 / 4 < 64^2
  Row row(x);
  kernel::make_second_codes(x, row.view(), 0);
  CHECK(row.value(1) == doctest::Approx(0.2).epsilon(0.01));
  x[1] = 64.2f;
  Row even(x);
  kernel::make_second_codes(x, even.view(), 0);
  CHECK(even.scales[0] == 0);
}

}  // namespace mica::test::second_codes_test
