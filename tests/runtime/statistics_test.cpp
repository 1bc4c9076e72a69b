// SPDX-License-Identifier: Apache-2.0

#include "mica_tools/measure/statistics.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <initializer_list>

namespace mica::test::statistics_test {

TEST_CASE("a running mean has the mean and the standard error of its numbers") {
  RunningMean mean;
  CHECK(mean.mean() == 0);
  CHECK(mean.error() == 0);
  mean.add(1);
  CHECK(mean.mean() == 1);
  CHECK(mean.error() == 0);
  for (const double x : {2.0, 3.0, 6.0}) mean.add(x);
  CHECK(mean.count() == 4);
  CHECK(mean.mean() == doctest::Approx(3));
  // Deviations -2, -1, 0, 3: variance 3.5, over n - 1.
  CHECK(mean.error() == doctest::Approx(std::sqrt(3.5 / 3)));
}

TEST_CASE("equal numbers have no error, whatever rounding does") {
  RunningMean mean;
  for (int i = 0; i < 1000; ++i) mean.add(0.1);
  CHECK(mean.error() == doctest::Approx(0).epsilon(1e-9));
  CHECK(mean.error() >= 0);
}

TEST_CASE("the exponential of an estimate carries its error by the slope") {
  const Estimate e = Estimate{2, 0.5}.exp();
  CHECK(e.value == doctest::Approx(std::exp(2.0)));
  CHECK(e.error == doctest::Approx(0.5 * std::exp(2.0)));
}

TEST_CASE("ranks lie between the numbers beside them") {
  const Sorted sorted({4, 1, 3, 2});
  CHECK(sorted.at(0) == 1);
  CHECK(sorted.at(1) == 4);
  CHECK(sorted.at(0.5) == doctest::Approx(2.5));
  CHECK(sorted.at(1.0 / 3) == doctest::Approx(2));
  CHECK(sorted.at(-1) == 1);
  CHECK(sorted.at(7) == 4);
  CHECK(Sorted({5}).at(0.3) == 5);
  CHECK(Sorted({}).at(0.5) == 0);
}

}  // namespace mica::test::statistics_test
