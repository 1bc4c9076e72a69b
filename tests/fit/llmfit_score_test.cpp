// SPDX-License-Identifier: Apache-2.0
//
// llmfit's score, from the formulas of fit/llmfit_score.hpp in numbers that were worked out by hand.

#include "mica_tools/fit/llmfit_score.hpp"

#include "fit/planned.hpp"

#include <doctest/doctest.h>

namespace mica::test::llmfit_score_test {

namespace rules = fit::rules;

TEST_CASE("weights of every use are a whole, and every use has them") {
  for (const fit::Use& use : fit::uses) {
    CAPTURE(use.name);
    const rules::LlmfitUse& weights = rules::llmfit_use(use);
    CHECK(weights.name == use.name);
    CHECK(weights.quality + weights.speed + weights.fit + weights.context == doctest::Approx(1));
  }
}

TEST_CASE("quality grows with the weights that a token uses, and pays for bits that are missing") {
  constexpr std::pair<double, double> steps[] = {{0.5e9, 30}, {1e9, 45},  {3e9, 60},  {7e9, 75},
                                                 {10e9, 82},  {20e9, 89}, {40e9, 95}, {700e9, 95}};
  for (const auto& step : steps) {
    const double weights = step.first, points = step.second;
    CAPTURE(weights);
    CHECK(rules::quality_score(weights, 0) == points);
    CHECK(rules::quality_score(weights, 5) == points - 5);
  }
  constexpr std::pair<std::string_view, double> penalties[] = {{"Q8_0", 0},     {"Q6_K", 1},    {"Q5_K_M", 2},
                                                               {"Q4_K_M", 5},   {"Q3_K_M", 8},  {"Q2_K", 12},
                                                               {"mlx-8bit", 0}, {"mlx-4bit", 4}};
  for (const auto& [name, points] : penalties) CHECK(fit::penalty_of(name, 0) == points);
  CHECK(fit::penalty_of("IQ3_XS", 3.3) == 8);  // by its bits
}

TEST_CASE("a fit is whole up to seventy per cent, then falls as half of a bell") {
  CHECK(rules::fit_score(0.1) == 100);
  CHECK(rules::fit_score(0.7) == 100);
  CHECK(rules::fit_score(0.9) == doctest::Approx(60.65).epsilon(0.001));  // 100 * exp(-1/2)
  CHECK(rules::fit_score(1.0) == doctest::Approx(32.47).epsilon(0.001));  // 100 * exp(-2.25/2)
  CHECK(rules::fit_score(1.01) == 0);
}

TEST_CASE("the four parts are weighed by the use, to a tenth") {
  const fit::Fit eight = made_fit(8e9, 10, 90);  // quality 75, fit 60.65
  // general: 75 * .45 + 25 * .30 + 60.65 * .15 + 100 * .10 = 33.75 + 7.5 + 9.10 + 10
  CHECK(rules::llmfit_score(eight, fit::use_of("general")).total == doctest::Approx(60.3));
  // coding: 75 * .50 + 25 * .20 + 60.65 * .15 + 100 * .15 = 37.5 + 5 + 9.10 + 15
  CHECK(rules::llmfit_score(eight, fit::use_of("coding")).total == doctest::Approx(66.6));
  // chat: 75 * .40 + 25 * .35 + 60.65 * .15 + 100 * .10 = 30 + 8.75 + 9.10 + 10
  CHECK(rules::llmfit_score(eight, fit::use_of("chat")).total == doctest::Approx(57.8));
  // reasoning, whose target is 25 tokens a second: 75 * .55 + 40 * .15 + 60.65 * .15 + 100 * .15
  CHECK(rules::llmfit_score(eight, fit::use_of("reasoning")).total == doctest::Approx(71.3));
  CHECK(rules::llmfit_score(made_fit(8e9, 10, 90, 2048), fit::use_of("general")).context == 70);
  CHECK(rules::llmfit_score(made_fit(8e9, 10, 90, 2048), fit::use_of("coding")).context == 30);
  fit::Fit tight = eight;
  tight.level = fit::Level::too_tight;
  CHECK(rules::llmfit_score(tight, fit::use_of("general")).total == 0);
}

}  // namespace mica::test::llmfit_score_test
