// SPDX-License-Identifier: Apache-2.0

#include "mica_tools/measure/log_probabilities.hpp"

#include <doctest/doctest.h>

#include <array>
#include <limits>

namespace mica::test::log_probabilities_test {

TEST_CASE("log-probabilities add up to one and do not overflow") {
  const std::array<float, 5> logits = {1000, 1001, 999, 1001, -1000};
  const LogProbabilities row(logits);
  CHECK(row.top() == 1);  // the first of two
  double sum = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) sum += std::exp(row[i]);
  CHECK(sum == doctest::Approx(1));
  CHECK(row[1] - row[0] == doctest::Approx(1));
}

TEST_CASE("a row with a number that is none has no finite sum") {
  const std::array<float, 3> nan = {0, std::numeric_limits<float>::quiet_NaN(), 1};
  CHECK_FALSE(std::isfinite(LogProbabilities(nan).log_sum()));
  const std::array<float, 3> infinite = {0, std::numeric_limits<float>::infinity(), 1};
  CHECK_FALSE(std::isfinite(LogProbabilities(infinite).log_sum()));
}

}  // namespace mica::test::log_probabilities_test
