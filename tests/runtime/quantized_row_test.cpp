// SPDX-License-Identifier: Apache-2.0

#include "mica/base/rng.hpp"
#include "mica_tools/measure/log_probabilities.hpp"

#include <doctest/doctest.h>

#include <vector>

namespace mica::test::quantized_row_test {
namespace {

std::vector<float> random_logits(std::size_t n, float spread) {
  CounterRng rng(5);
  std::vector<float> row(n);
  for (float& x : row) x = spread * static_cast<float>(rng.uniform());
  return row;
}

}  // namespace

TEST_CASE("a coded row gives back log-probabilities within half a step, of any number of tokens") {
  for (const std::size_t n : {1U, 2U, 7U, 512U, 513U}) {
    CAPTURE(n);
    const auto logits = random_logits(n, 9);
    const LogProbabilities row(logits);
    QuantizedRow coded(n);
    coded.encode(row);
    CHECK(coded.bytes().size() == 8 + 2 * (n + n % 2));
    CHECK(coded.valid());
    for (std::size_t i = 0; i < n; ++i) CHECK(coded[i] == doctest::Approx(row[i]).epsilon(9.0 / 65535));
  }
}

TEST_CASE("what is 16 below the likeliest token has code 0, the likeliest the highest") {
  const std::vector<float> logits = {0, -16.5F, -100, -15.999F, -8};
  QuantizedRow coded(logits.size());
  const LogProbabilities row(logits);
  coded.encode(row);
  CHECK(coded.code(0) == 65535);
  CHECK(coded.code(1) == 0);
  CHECK(coded.code(2) == 0);
  CHECK(coded.code(3) > 0);
  CHECK(coded[4] == doctest::Approx(row[4]).epsilon(1e-4));
  CHECK(static_cast<double>(coded.low()) == doctest::Approx(row[0] - 16));
}

TEST_CASE("a row in which all tokens are alike has no range") {
  const std::vector<float> logits(6, 3.5F);
  QuantizedRow coded(logits.size());
  coded.encode(LogProbabilities(logits));
  CHECK(coded.scale() == 0);
  CHECK(coded.valid());
  for (std::size_t i = 0; i < 6; ++i) CHECK(coded[i] == doctest::Approx(std::log(1.0 / 6)));
}

}  // namespace mica::test::quantized_row_test
