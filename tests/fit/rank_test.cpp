// SPDX-License-Identifier: Apache-2.0
//
// Scores and the order that follows, from the formulas of fit/rank.hpp in numbers that were worked out by hand.

#include "mica_tools/fit/rank.hpp"

#include "fit/planned.hpp"
#include "io/temporary_folder.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

namespace mica::test::rank_test {
namespace {

using fit::Level, fit::Mode;

/// A fit of so many weights, at so many tokens a second, which needs so much of 100 bytes.
fit::Fit made(double parameters, double tokens, std::uint64_t need, std::size_t n_ctx = 8192) {
  fit::Fit fit;
  fit.name = "made";
  fit.parameters = fit.active = parameters;
  fit.decode = tokens;
  fit.need = {0, need};
  fit.available = {0, 100};
  fit.setting.n_ctx = fit.requested = n_ctx;
  fit.level = Level::good;
  return fit;
}

}  // namespace

TEST_CASE("weights of every use are a whole") {
  for (const fit::Use& use : fit::uses) {
    CAPTURE(use.name);
    CHECK(use.quality + use.speed + use.fit + use.context == doctest::Approx(1));
  }
  CHECK(mentions(refusal([] { return fit::use_of("poems").tokens; }),
                 "allowed: general coding chat reasoning"));
}

TEST_CASE("quality grows with the weights that a token uses, and pays for bits that are missing") {
  constexpr std::pair<double, double> steps[] = {{0.5e9, 30}, {1e9, 45},  {3e9, 60},  {7e9, 75},
                                                 {10e9, 82},  {20e9, 89}, {40e9, 95}, {700e9, 95}};
  for (const auto& step : steps) {
    const double weights = step.first, points = step.second;
    CAPTURE(weights);
    CHECK(fit::quality_score(weights, 0) == points);
    CHECK(fit::quality_score(weights, 5) == points - 5);
  }
  constexpr std::pair<std::string_view, double> penalties[] = {{"Q8_0", 0},     {"Q6_K", 1},    {"Q5_K_M", 2},
                                                               {"Q4_K_M", 5},   {"Q3_K_M", 8},  {"Q2_K", 12},
                                                               {"mlx-8bit", 0}, {"mlx-4bit", 4}};
  for (const auto& [name, points] : penalties) CHECK(fit::penalty_of(name, 0) == points);
  CHECK(fit::penalty_of("IQ3_XS", 3.3) == 8);  // by its bits
}

TEST_CASE("a fit is whole up to seventy per cent, then falls as half of a bell") {
  CHECK(fit::fit_score(0.1) == 100);
  CHECK(fit::fit_score(0.7) == 100);
  CHECK(fit::fit_score(0.9) == doctest::Approx(60.65).epsilon(0.001));  // 100 * exp(-1/2)
  CHECK(fit::fit_score(1.0) == doctest::Approx(32.47).epsilon(0.001));  // 100 * exp(-2.25/2)
  CHECK(fit::fit_score(1.01) == 0);
}

TEST_CASE("the four parts are weighed by the use, to a tenth") {
  const fit::Fit eight = made(8e9, 10, 90);  // quality 75, fit 60.65
  // general: 75 * .45 + 25 * .30 + 60.65 * .15 + 100 * .10 = 33.75 + 7.5 + 9.10 + 10
  CHECK(fit::score_of(eight, fit::use_of("general")).total == doctest::Approx(60.3));
  // coding: 75 * .50 + 25 * .20 + 60.65 * .15 + 100 * .15 = 37.5 + 5 + 9.10 + 15
  CHECK(fit::score_of(eight, fit::use_of("coding")).total == doctest::Approx(66.6));
  // chat: 75 * .40 + 25 * .35 + 60.65 * .15 + 100 * .10 = 30 + 8.75 + 9.10 + 10
  CHECK(fit::score_of(eight, fit::use_of("chat")).total == doctest::Approx(57.8));
  // reasoning, whose target is 25 tokens a second: 75 * .55 + 40 * .15 + 60.65 * .15 + 100 * .15
  CHECK(fit::score_of(eight, fit::use_of("reasoning")).total == doctest::Approx(71.3));
  CHECK(fit::score_of(made(8e9, 10, 90, 2048), fit::use_of("general")).context == 70);
  CHECK(fit::score_of(made(8e9, 10, 90, 2048), fit::use_of("coding")).context == 30);
}

TEST_CASE("what stays in memory comes before what is streamed, and that before what does not run") {
  fit::Fit slow = made(0.5e9, 1, 90), streamed = made(70e9, 30, 90), tight = made(70e9, 30, 150),
           tighter = made(70e9, 30, 190);
  slow.name = "slow";
  streamed.name = "streamed";
  streamed.mode = Mode::streamed;
  streamed.level = Level::marginal;
  tight.name = "tight";
  tighter.name = "tighter";
  tight.level = tighter.level = Level::too_tight;
  const auto order = fit::ranked({tighter, tight, streamed, slow}, fit::use_of("general"));
  CHECK(order[0].fit.name == "slow");
  CHECK(order[1].fit.name == "streamed");
  CHECK(order[2].fit.name == "tight");
  CHECK(order[3].fit.name == "tighter");
  CHECK(order[2].score.total == 0);
}

TEST_CASE("equal scores are told apart by level, speed, weights and name, in whatever order they come") {
  std::vector<fit::Fit> fits;
  for (const char* name : {"c", "a", "b", "faster", "larger", "perfect"}) {
    fits.push_back(made(8e9, 50, 50));
    fits.back().name = name;
  }
  fits[3].decode = 60;
  fits[4].parameters = 9e9;
  fits[5].level = Level::perfect;
  std::mt19937 random(1);
  for (int i = 0; i < 20; ++i) {
    std::shuffle(fits.begin(), fits.end(), random);
    std::string order;
    for (const fit::Ranked& row : fit::ranked(fits, fit::use_of("general"))) order += row.fit.name + " ";
    CHECK(order == "perfect faster larger a b c ");
  }
}

}  // namespace mica::test::rank_test
