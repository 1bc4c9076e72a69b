// SPDX-License-Identifier: Apache-2.0

#include "mica/block/detail/routing.hpp"

#include "mica/base/rng.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <vector>

namespace mica::test::routing_test {
namespace {

using block::Choice;
using block::ExpertsConfig;
using block::Routing;

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

std::vector<float> random(std::size_t n, std::uint64_t seed) {
  CounterRng rng(seed);
  std::vector<float> out(n);
  for (float& x : out) x = static_cast<float>(rng.uniform() * 12 - 6);
  return out;
}

std::vector<Choice> choose(const ExpertsConfig& config, std::vector<float> logits,
                           const float* scale = nullptr) {
  std::vector<Choice> choices(config.used);
  block::choose_experts(config, logits, scale, choices);
  return choices;
}

std::vector<double> exact_scores(Routing routing, const std::vector<float>& logits) {
  std::vector<double> scores;
  double sum = 0;
  for (const float x : logits) sum += std::exp(static_cast<double>(x));
  for (const float x : logits) {
    const double e = std::exp(static_cast<double>(x));
    scores.push_back(routing == Routing::softmax ? e / sum : e / (1 + e));
  }
  return scores;
}

/// The experts with the highest scores, in ascending order.
std::vector<std::size_t> best(const std::vector<double>& scores, std::size_t used) {
  std::vector<std::size_t> order(scores.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return scores[a] > scores[b]; });
  order.resize(used);
  std::sort(order.begin(), order.end());
  return order;
}

std::vector<std::uint32_t> experts_of(const std::vector<Choice>& choices) {
  std::vector<std::uint32_t> out;
  for (const Choice& choice : choices) out.push_back(choice.expert);
  return out;
}

}  // namespace

TEST_CASE("a token's experts are those with the highest scores, with the weights that the formulas give") {
  for (const Routing routing : {Routing::softmax, Routing::sigmoid}) {
    for (const bool normalized : {true, false}) {
      for (const std::size_t count : {1u, 2u, 5u, 37u, 128u}) {
        for (const std::size_t used : {std::size_t{1}, (count + 1) / 2, count}) {
          CAPTURE(count);
          CAPTURE(used);
          const ExpertsConfig config{
              .count = count, .used = used, .routing = routing, .normalized = normalized};
          const auto logits = random(count, count + used), scale = random(count, 99);
          const auto scores = exact_scores(routing, logits);
          const auto expected = best(scores, used);
          double sum = 0;
          for (const std::size_t e : expected) sum += scores[e];
          const auto choices = choose(config, logits, scale.data());
          for (std::size_t i = 0; i < used; ++i) {
            const std::size_t e = expected[i];
            REQUIRE(choices[i].expert == e);
            const double weight = scores[e] / (normalized ? sum : 1) * static_cast<double>(scale[e]);
            CHECK(std::fabs(static_cast<double>(choices[i].weight) - weight) <
                  1e-6 * (1 + std::fabs(weight)));
          }
        }
      }
    }
  }
}

TEST_CASE("of equal scores the lower expert is chosen") {
  const ExpertsConfig config{.count = 5, .used = 3};
  CHECK(experts_of(choose(config, {1, 1, 1, 1, 1})) == std::vector<std::uint32_t>{0, 1, 2});
  CHECK(experts_of(choose(config, {0, 2, 1, 2, 1})) == std::vector<std::uint32_t>{1, 2, 3});
  for (const Choice& choice : choose(config, {1, 1, 1, 1, 1})) {
    CHECK(choice.weight == doctest::Approx(1.0 / 3));
  }
}

TEST_CASE("logits that are no numbers choose the first experts and give weights that are none") {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const auto& logits : {std::vector<float>(6, nan),
                             {0, 0, 0, 0, 0, nan},
                             {0, infinity, 0, 0, 0, 0},
                             std::vector<float>(6, -infinity)}) {
    const auto choices = choose({.count = 6, .used = 3}, logits);
    CHECK(experts_of(choices) == std::vector<std::uint32_t>{0, 1, 2});
    for (const Choice& choice : choices) CHECK(std::isnan(choice.weight));
  }
}

TEST_CASE("wherever a logit is no number, a token has as many different experts as it should") {
  const ExpertsConfig config{.count = 5, .used = 4, .routing = Routing::sigmoid, .normalized = false};
  for (std::size_t bad = 0; bad < 32; ++bad) {
    CAPTURE(bad);
    std::vector<float> logits = {3, -2, 0, 1, -50};
    for (std::size_t e = 0; e < 5; ++e) {
      if ((bad >> e & 1) != 0) logits[e] = nan;
    }
    const auto chosen = experts_of(choose(config, logits));
    CHECK(std::set<std::uint32_t>(chosen.begin(), chosen.end()).size() == 4);
    CHECK(std::is_sorted(chosen.begin(), chosen.end()));
    CHECK(chosen.back() < 5);
  }
}

TEST_CASE("very large logits do not overflow the softmax") {
  const auto choices = choose({.count = 3, .used = 2}, {80000, 79999, -80000});
  CHECK(choices[0].weight == doctest::Approx(1 / (1 + std::exp(-1.0))));
  CHECK(choices[1].weight == doctest::Approx(1 / (1 + std::exp(1.0))));
}

TEST_CASE("rows are sorted by expert, then by token, and every choice knows its row") {
  constexpr std::size_t count = 47, used = 3;
  for (const std::size_t tokens : {1u, 5u, 41u}) {
    std::vector<Choice> choices;
    std::set<std::uint32_t> chosen;
    for (std::size_t t = 0; t < tokens; ++t) {
      for (const Choice& one : choose({.count = count, .used = used}, random(count, t))) {
        choices.push_back(one);
        chosen.insert(one.expert);
      }
    }
    std::vector<std::uint32_t> expert(count, 77), begin(count + 1, 77), token(tokens * used, 77);
    std::vector<float> weight(tokens * used, -1);
    block::ExpertRows rows{choices, expert, begin, token, weight};
    rows.sort(used);
    CHECK(std::equal(chosen.begin(), chosen.end(), expert.begin()));
    CHECK(begin.front() == 0);
    CHECK(begin[chosen.size()] == tokens * used);
    std::set<std::uint32_t> seen;
    for (std::size_t i = 0; i < choices.size(); ++i) {
      const Choice& choice = choices[i];
      const auto place = std::find(expert.begin(), expert.end(), choice.expert) - expert.begin();
      CHECK(seen.insert(choice.row).second);
      CHECK(choice.row >= begin[static_cast<std::size_t>(place)]);
      CHECK(choice.row < begin[static_cast<std::size_t>(place) + 1]);
      CHECK(token[choice.row] == i / used);
      CHECK(weight[choice.row] == choice.weight);
    }
    for (std::size_t i = 0; i < chosen.size(); ++i)
      CHECK(std::is_sorted(token.begin() + begin[i], token.begin() + begin[i + 1]));
  }
}

TEST_CASE("the drawing of the header is what sorting gives") {
  std::vector<Choice> choices = {{1, 1}, {3, 1}, {0, 1}, {3, 1}, {1, 1}, {4, 1}};
  std::vector<std::uint32_t> expert(5), begin(6), token(6);
  std::vector<float> weight(6);
  block::ExpertRows rows{choices, expert, begin, token, weight};
  rows.sort(2);
  CHECK(std::vector(expert.begin(), expert.begin() + 4) == std::vector<std::uint32_t>{0, 1, 3, 4});
  CHECK(std::vector(begin.begin(), begin.begin() + 5) == std::vector<std::uint32_t>{0, 1, 3, 5, 6});
  CHECK(token == std::vector<std::uint32_t>{1, 0, 2, 0, 1, 2});
}

}  // namespace mica::test::routing_test
