// SPDX-License-Identifier: Apache-2.0
//
// Temperature, top-k, top-p, min-p and greedy: each against the definition, written out.

#include "mica/sample/stages.hpp"

#include "mica/base/error.hpp"
#include "rows.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <set>
#include <vector>

namespace stages_test {

using mica::sample::Greedy;
using mica::sample::MinP;
using mica::sample::Temperature;
using mica::sample::TokenId;
using mica::sample::TopK;
using mica::sample::TopP;
using mica::test::Row;

namespace {

template <class Stage>
std::set<TokenId> kept(const std::vector<float>& logits, Stage stage) {
  Row row(logits);
  stage.apply(*row);
  const auto ids = row.ids();
  return {ids.begin(), ids.end()};
}

bool contains(const std::set<TokenId>& large, const std::set<TokenId>& small) {
  return std::includes(large.begin(), large.end(), small.begin(), small.end());
}

}  // namespace

TEST_CASE("greedy takes the largest logit, and of equal ones the lowest id") {
  CHECK(kept({1.0f, 3.0f, 2.0f}, Greedy()) == std::set<TokenId>{1});
  CHECK(kept({1.0f, 3.0f, 3.0f, 3.0f}, Greedy()) == std::set<TokenId>{1});
  CHECK(kept({-5.0f}, Greedy()) == std::set<TokenId>{0});
  Row row({1.0f, 3.0f, 2.0f, 3.0f});
  row->sort_best(2);
  Greedy().apply(*row);
  CHECK(row.ids() == std::vector<TokenId>{1});
}

TEST_CASE("top-k keeps the k best, ties by id, best first") {
  Row row({2.0f, 7.0f, 7.0f, 1.0f, 7.0f});
  TopK(2).apply(*row);
  CHECK(row.ids() == std::vector<TokenId>{1, 2});
  CHECK(kept({1.0f, 2.0f}, TopK(5)).size() == 2);
  CHECK(kept({1.0f, 2.0f}, TopK(0)).size() == 2);
}

TEST_CASE("a larger k keeps all that a smaller one keeps") {
  const auto logits = mica::test::coarse_logits(200, 3);
  std::set<TokenId> before;
  for (int k = 1; k <= 200; k += 7) {
    const auto now = kept(logits, TopK(k));
    CHECK(now.size() == static_cast<std::size_t>(k));
    CHECK(contains(now, before));
    before = now;
  }
}

TEST_CASE("top-p keeps the fewest whose probabilities reach p") {
  // Probabilities 0.5, 0.3, 0.15, 0.05 in another order.
  const std::vector<float> logits = {std::log(0.15f), std::log(0.5f), std::log(0.05f), std::log(0.3f)};
  CHECK(kept(logits, TopP(0.0f)) == std::set<TokenId>{1});
  CHECK(kept(logits, TopP(0.49f)) == std::set<TokenId>{1});
  CHECK(kept(logits, TopP(0.51f)) == std::set<TokenId>{1, 3});
  CHECK(kept(logits, TopP(0.79f)) == std::set<TokenId>{1, 3});
  CHECK(kept(logits, TopP(0.81f)) == std::set<TokenId>{0, 1, 3});
  CHECK(kept(logits, TopP(0.96f)).size() == 4);
  CHECK(kept(logits, TopP(1.0f)).size() == 4);
}

TEST_CASE("top-p over a large flat row keeps the share it should, and grows with p") {
  const std::vector<float> flat(5000, 1.0f);
  CHECK(kept(flat, TopP(0.49999f)).size() == 2500);
  const auto logits = mica::test::smooth_logits(3000, 9);
  const auto p = mica::test::probabilities(logits);
  std::set<TokenId> before;
  for (const float wanted : {0.1f, 0.3f, 0.5f, 0.9f, 0.99f, 0.999f}) {
    CAPTURE(wanted);
    const auto now = kept(logits, TopP(wanted));
    CHECK(contains(now, before));
    double sum = 0.0;
    double min = 1.0;
    for (const TokenId id : now) {
      sum += p[id];
      min = std::min(min, p[id]);
    }
    CHECK(sum >= static_cast<double>(wanted) - 1e-5);
    CHECK(sum - min < static_cast<double>(wanted) + 1e-5);
    before = now;
  }
}

TEST_CASE("min-p drops what is less than p times as probable as the best") {
  const std::vector<float> logits = {std::log(0.5f), std::log(0.26f), std::log(0.24f), std::log(0.01f)};
  CHECK(kept(logits, MinP(0.5f)) == std::set<TokenId>{0, 1});
  CHECK(kept(logits, MinP(0.4f)) == std::set<TokenId>{0, 1, 2});
  CHECK(kept(logits, MinP(1.0f)) == std::set<TokenId>{0});
  CHECK(kept(logits, MinP(0.0f)).size() == 4);
  CHECK(kept({1.0f, 1.0f, 0.0f}, MinP(1.0f)) == std::set<TokenId>{0, 1});
}

TEST_CASE("temperature scales the distance of logits and keeps the best the best") {
  Row row({1.0f, 3.0f, 2.0f});
  Temperature(0.5f).apply(*row);
  CHECK(row.values() == std::vector<float>{-4.0f, 0.0f, -2.0f});
  Row cold({-3.0e38f, 3.0e38f, 1.0f});
  Temperature(Temperature::min).apply(*cold);
  cold->softmax();
  CHECK((*cold)[1].p == 1.0f);
  CHECK((*cold)[0].p == 0.0f);
}

TEST_CASE("values out of range are refused with what was found and what is allowed") {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK_THROWS_WITH_AS(TopK(-1), "top-k: found -1, allowed 0 (keeps all) or more", mica::Error);
  CHECK_THROWS_WITH_AS(TopP(1.5f), "top-p: found 1.5, allowed 0 to 1", mica::Error);
  CHECK_THROWS_WITH_AS(TopP{nan}, "top-p: found nan, allowed 0 to 1", mica::Error);
  CHECK_THROWS_WITH_AS(MinP(-0.1f), "min-p: found -0.1, allowed 0 to 1", mica::Error);
  CHECK_THROWS_WITH_AS(Temperature(0.0f),
                       "temperature: found 0, allowed 1e-06 to 1e+06, or 0 for always the best token",
                       mica::Error);
}

}  // namespace stages_test
