// SPDX-License-Identifier: Apache-2.0

#include "mica_tools/measure/divergence.hpp"

#include "mica/base/rng.hpp"

#include <doctest/doctest.h>

#include <vector>

namespace mica::test::divergence_test {
namespace {

std::vector<float> random_row(CounterRng& rng, std::size_t n) {
  std::vector<float> row(n);
  for (float& x : row) x = static_cast<float>(rng.uniform() * 6);
  return row;
}

}  // namespace

TEST_CASE("a model does not diverge from itself, but for the coding of its base") {
  CounterRng rng(3);
  Divergence d;
  for (int i = 0; i < 50; ++i) {
    const auto logits = random_row(rng, 33);
    const LogProbabilities row(logits);
    QuantizedRow base(33);
    base.encode(row);
    d.add(row, base, static_cast<TokenId>(i % 33));
  }
  CHECK(d.count() == 50);
  CHECK(d.kl().value == doctest::Approx(0).epsilon(1e-6));
  CHECK(d.same_top().value == 1);
  CHECK(d.same_top().error == 0);
  CHECK(d.log_ratio().value == doctest::Approx(0).epsilon(1e-4));
  CHECK(d.correlation() == doctest::Approx(1).epsilon(1e-4));
  CHECK(d.dp_rms().value == doctest::Approx(0).epsilon(1e-3));
}

TEST_CASE("figures are what the definitions say") {
  // Two tokens: the base says 3/4 and 1/4, the model the other way round.
  const std::vector<float> base_logits = {std::log(3.0F), 0};
  const std::vector<float> logits = {0, std::log(3.0F)};
  QuantizedRow base(2);
  base.encode(LogProbabilities(base_logits));
  Divergence d;
  d.add(LogProbabilities(logits), base, 0);
  d.add(LogProbabilities(logits), base, 1);
  CHECK(d.kl().value == doctest::Approx(0.5 * std::log(3.0)).epsilon(1e-4));
  CHECK(d.same_top().value == 0);
  CHECK(d.nll().value == doctest::Approx(0.5 * (std::log(4.0) + std::log(4.0 / 3))));
  CHECK(d.log_ratio().value == doctest::Approx(0).epsilon(1e-4));
  CHECK(d.correlation() == doctest::Approx(-1).epsilon(1e-4));
  CHECK(d.dp().value == doctest::Approx(0).epsilon(1e-4));
  CHECK(d.dp_rms().value == doctest::Approx(0.5).epsilon(1e-4));
  CHECK(d.dp_values().at(0) == doctest::Approx(-0.5).epsilon(1e-4));
  CHECK(d.dp_values().at(1) == doctest::Approx(0.5).epsilon(1e-4));
  CHECK(d.kl_values().at(0.5) == doctest::Approx(0.5 * std::log(3.0)).epsilon(1e-4));
}

TEST_CASE("the error of a ratio is smaller than that of either part when both move together") {
  CounterRng rng(8);
  Divergence d;
  for (int i = 0; i < 400; ++i) {
    auto logits = random_row(rng, 20);
    QuantizedRow base(20);
    base.encode(LogProbabilities(logits));
    for (float& x : logits) x += static_cast<float>(rng.uniform() * 0.1);
    d.add(LogProbabilities(logits), base, static_cast<TokenId>(i % 20));
  }
  CHECK(d.correlation() > 0.9);
  CHECK(d.log_ratio().error < 0.3 * d.nll().error);
  CHECK(d.difference().error < 0.3 * d.perplexity().error);
  CHECK(d.kl().value > 0);
  CHECK(d.kl().value < 0.01);
}

TEST_CASE("nothing measured is all zeros") {
  const Divergence d;
  CHECK(d.kl().value == 0);
  CHECK(d.correlation() == 0);
  CHECK(d.same_top().value == 0);
  CHECK(d.dp_rms().error == 0);
  CHECK(d.kl_values().at(1) == 0);
}

}  // namespace mica::test::divergence_test
