// SPDX-License-Identifier: Apache-2.0

#include "mica/base/finite.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <vector>

namespace mica::finite_test {
namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

TEST_CASE("one number that is not finite is found wherever it stands") {
  for (const std::size_t n : std::vector<std::size_t>{1, 63, 64, 65, 200}) {
    std::vector<float> x(n, -std::numeric_limits<float>::max());
    CHECK(all_finite(x));
    for (std::size_t i = 0; i < n; ++i) {
      for (const float bad : {inf, -inf, nan, -nan}) {
        x[i] = bad;
        CHECK_FALSE(all_finite(x));
      }
      x[i] = i % 2 == 0 ? std::numeric_limits<float>::max() : std::numeric_limits<float>::denorm_min();
    }
    CHECK(all_finite(x));
  }
  CHECK(all_finite({}));
}

TEST_CASE("runs are skipped up to the first that holds a number above the limit, or NaN") {
  std::vector<float> x(200, -1.0f);
  CHECK(skip_below(x, 0, -1.0f) == 192);
  CHECK(skip_below(x, 3, -1.0f) == 195);
  CHECK(skip_below(x, 0, -2.0f) == 0);
  for (const float above : {-0.5f, inf, nan}) {
    x[130] = above;
    CHECK(skip_below(x, 0, -1.0f) == 128);
    CHECK(skip_below(x, 5, -1.0f) == 69);
    CHECK(skip_below(x, 131, -1.0f) == 195);
  }
  x[130] = -inf;
  CHECK(skip_below(x, 0, -1.0f) == 192);
  CHECK(skip_below(x, 150, -1.0f) == 150);
}

}  // namespace
}  // namespace mica::finite_test
