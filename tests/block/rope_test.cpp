// SPDX-License-Identifier: Apache-2.0

#include "mica/block/rope.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

namespace mica::test::rope_test {
namespace {

/// Cosines and sines of some positions.
struct Tables {
  Tables(const block::RopeFrequencies& frequencies, std::size_t pos, std::size_t n)
      : cos(n * frequencies.pairs()), sin(cos.size()) {
    frequencies.fill(pos, {cos.data(), n, frequencies.pairs()}, {sin.data(), n, frequencies.pairs()});
  }
  std::vector<float> cos, sin;
};

}  // namespace

TEST_CASE("angles are right to the last bit but one, far out too") {
  for (const double base : {10000.0, 500000.0, 1e6}) {
    for (const std::size_t dims : {2u, 64u, 128u}) {
      CAPTURE(base);
      CAPTURE(dims);
      const block::RopeFrequencies frequencies({.dims = dims, .base = base, .factors = {}});
      REQUIRE(frequencies.pairs() == dims / 2);
      for (const std::size_t pos : {0u, 1u, 2047u, 131071u, 1000000u}) {
        const Tables tables(frequencies, pos, 1);
        for (std::size_t i = 0; i < dims / 2; ++i) {
          const long double exponent = -2.0L * static_cast<long double>(i) / static_cast<long double>(dims);
          const long double angle =
              static_cast<long double>(pos) * std::pow(static_cast<long double>(base), exponent);
          CHECK(std::fabs(tables.cos[i] - std::cos(angle)) < 1.2e-7L);
          CHECK(std::fabs(tables.sin[i] - std::sin(angle)) < 1.2e-7L);
        }
      }
    }
  }
}

TEST_CASE("factors and linear scaling divide the frequency") {
  const block::RopeFrequencies plain({.dims = 6, .base = 100.0, .factors = {}});
  const block::RopeFrequencies scaled(
      {.dims = 6, .base = 100.0, .scale = 4.0, .factors = {1.0f, 2.0f, 8.0f}});
  for (const std::size_t pos : {8u, 64u, 800u}) {
    const Tables a(scaled, pos * 4, 1);
    CHECK(a.cos[0] == Tables(plain, pos, 1).cos[0]);
    CHECK(a.sin[1] == Tables(plain, pos / 2, 1).sin[1]);
    CHECK(a.cos[2] == Tables(plain, pos / 8, 1).cos[2]);
  }
}

TEST_CASE("YaRN scales slow pairs, leaves fast ones, and blends between") {
  // 64 numbers, base 10,000, 64 tokens stretched four times: pair(turns) = 32 ln(64 / (turns 2 pi)) / ln(10,000)
  block::RopeConfig config{.dims = 64, .factors = {}};
  const block::RopeFrequencies plain(config);
  config.yarn = {.factor = 4, .original_context = 64};
  const block::RopeFrequencies bent(config);
  const double magnitude = 1 + 0.1 * std::log(4.0);
  const auto pair = [](double turns) {
    return 32 * std::log(64 / (turns * 6.283185307179586)) / std::log(1e4);
  };
  const double low = std::max(0.0, std::floor(pair(32))), high = std::ceil(pair(1));
  REQUIRE(low == 0);
  REQUIRE(high == 9);
  const Tables a(plain, 12, 1), b(bent, 48, 1);
  CHECK(b.cos[20] == doctest::Approx(a.cos[20] * magnitude).epsilon(1e-6));  // slow: 48 is 12
  CHECK(Tables(bent, 5, 1).sin[0] == doctest::Approx(Tables(plain, 5, 1).sin[0] * magnitude).epsilon(1e-6));
  const double kept = 1 - 3.0 / 9, f = std::pow(1e4, -6.0 / 64) * (kept + (1 - kept) / 4);
  CHECK(Tables(bent, 7, 1).sin[3] == doctest::Approx(std::sin(7 * f) * magnitude).epsilon(1e-6));
}

TEST_CASE("long factors are used by caches that are longer than the model's first context") {
  block::RopeConfig config{.dims = 4, .factors = {1, 2}};
  config.long_factors = {4, 8};
  config.original_context = 100;
  const block::RopeFrequencies plain({.dims = 4, .factors = {}}), near(config, 100), far(config, 101);
  CHECK(Tables(near, 2, 1).sin[1] == Tables(plain, 1, 1).sin[1]);
  CHECK(Tables(far, 8, 1).sin[0] == Tables(plain, 2, 1).sin[0]);
  CHECK(Tables(far, 8, 1).sin[1] == Tables(plain, 1, 1).sin[1]);
}

TEST_CASE("a row of the tables is its position's, wherever a step begins") {
  const block::RopeFrequencies frequencies({.dims = 10, .factors = {}});
  const Tables whole(frequencies, 0, 20), part(frequencies, 7, 5);
  for (std::size_t i = 0; i < part.cos.size(); ++i) {
    CHECK(part.cos[i] == whole.cos[7 * 5 + i]);
    CHECK(part.sin[i] == whole.sin[7 * 5 + i]);
  }
}

TEST_CASE("the first position does not rotate") {
  const Tables tables(block::RopeFrequencies({.dims = 64, .factors = {}}), 0, 1);
  for (const float c : tables.cos) CHECK(c == 1.0f);
  for (const float s : tables.sin) CHECK(s == 0.0f);
}

}  // namespace mica::test::rope_test
