// SPDX-License-Identifier: Apache-2.0
//
// The stages that narrow or reshape candidates: each against the definition, written out.

#include "mica/sample/stages.hpp"

#include "mica/base/error.hpp"
#include "rows.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <set>
#include <vector>

namespace stages_test {

using mica::sample::Greedy;
using mica::sample::LogitBias;
using mica::sample::MinP;
using mica::sample::Temperature;
using mica::sample::TokenId;
using mica::sample::TopK;
using mica::sample::TopNSigma;
using mica::sample::TopP;
using mica::sample::Typical;
using mica::sample::Xtc;
using mica::test::Row;

namespace {

template <class Stage>
std::set<TokenId> kept(const std::vector<float>& logits, Stage stage) {
  Row row(logits);
  stage.apply(*row);
  const auto ids = row.ids();
  return {ids.begin(), ids.end()};
}

// By typicality: ids until their probabilities add up to p, straight from the paper.
std::set<TokenId> typical(const std::vector<float>& logits, double wanted) {
  const auto p = mica::test::probabilities(logits);
  double entropy = 0;
  for (const double each : p) entropy -= each > 0 ? each * std::log(each) : 0;
  std::vector<TokenId> ids(p.size());
  std::iota(ids.begin(), ids.end(), 0u);
  const auto distance = [&](TokenId id) { return std::abs(-std::log(p[id]) - entropy); };
  std::stable_sort(ids.begin(), ids.end(), [&](TokenId a, TokenId b) { return distance(a) < distance(b); });
  std::set<TokenId> out;
  double sum = 0;
  for (const TokenId id : ids) {
    out.insert(id);
    sum += p[id];
    if (sum >= wanted) break;
  }
  return out;
}

std::set<TokenId> above_sigma(const std::vector<float>& logits, double n) {
  double max = -INFINITY, mean = 0, variance = 0, count = 0;
  for (const float x : logits) {
    if (std::isinf(x)) continue;
    max = std::max(max, static_cast<double>(x)), mean += static_cast<double>(x), ++count;
  }
  mean /= count;
  for (const float x : logits) {
    if (!std::isinf(x)) variance += (static_cast<double>(x) - mean) * (static_cast<double>(x) - mean) / count;
  }
  std::set<TokenId> out;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (static_cast<double>(logits[i]) >= max - n * std::sqrt(variance)) out.insert(static_cast<TokenId>(i));
  }
  return out;
}

// All but those at least as probable as the threshold, and of these the least probable one, ties by id.
std::set<TokenId> without_top(const std::vector<float>& logits, double threshold) {
  const auto p = mica::test::probabilities(logits);
  std::vector<TokenId> top;
  std::set<TokenId> out;
  for (std::size_t i = 0; i < p.size(); ++i) {
    out.insert(static_cast<TokenId>(i));
    if (p[i] >= threshold) top.push_back(static_cast<TokenId>(i));
  }
  std::stable_sort(top.begin(), top.end(), [&](TokenId a, TokenId b) { return p[a] > p[b]; });
  for (std::size_t i = 0; i + 1 < top.size(); ++i) out.erase(top[i]);
  return out;
}

Xtc xtc(float probability, float threshold, std::uint64_t seed = 1) {
  return Xtc(probability, threshold, mica::CounterRng(seed));
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

TEST_CASE("typical keeps the tokens whose surprise is nearest to the entropy until they reach p") {
  // Entropy 1.21 nats; surprises 0.69, 1.20, 1.90, 3.00.
  const std::vector<float> logits = {std::log(0.5f), std::log(0.3f), std::log(0.15f), std::log(0.05f)};
  CHECK(kept(logits, Typical(0.0f)) == std::set<TokenId>{1});
  CHECK(kept(logits, Typical(0.29f)) == std::set<TokenId>{1});
  CHECK(kept(logits, Typical(0.31f)) == std::set<TokenId>{0, 1});
  CHECK(kept(logits, Typical(0.81f)) == std::set<TokenId>{0, 1, 2});
  CHECK(kept(logits, Typical(1.0f)).size() == 4);
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const auto row = mica::test::smooth_logits(1 + seed * 3, seed);
    for (const float p : {0.05f, 0.2f, 0.5f, 0.9f, 0.99f}) {
      CAPTURE(seed);
      CAPTURE(p);
      CHECK(kept(row, Typical(p)) == typical(row, static_cast<double>(p)));
    }
  }
}

TEST_CASE("typical leaves the logits of those that it keeps, in any row") {
  const auto logits = mica::test::smooth_logits(3000, 5);
  Row row(logits);
  row->sort_best(100);
  Typical(0.9f).apply(*row);
  CHECK(row->size() < 3000);
  CHECK(row->sorted() == 0);
  CHECK_FALSE(row->by_id());
  for (const auto& each : row->span()) CHECK(each.logit == logits[each.id]);
  CHECK(kept({-INFINITY, 1.0f, -INFINITY}, Typical(0.5f)) == std::set<TokenId>{1});
  CHECK(kept({3.0e38f, -3.0e38f, 3.0e38f}, Typical(0.9f)) == std::set<TokenId>{0, 2});
  CHECK(kept(std::vector<float>(1000, 2.0f), Typical(0.4999f)).size() == 500);
}

TEST_CASE("top-n-sigma keeps logits within n standard deviations of the best") {
  CHECK(kept({0.0f, 2.0f, 4.0f}, TopNSigma(1.0f)) == std::set<TokenId>{2});  // 1.63
  CHECK(kept({0.0f, 2.0f, 4.0f}, TopNSigma(1.5f)) == std::set<TokenId>{1, 2});
  CHECK(kept({0.0f, 2.0f, 4.0f, -INFINITY}, TopNSigma(1.5f)) == std::set<TokenId>{1, 2});
  for (const float off : {0.0f, -1.0f}) CHECK(kept({0.0f, 2.0f, 4.0f}, TopNSigma(off)).size() == 3);
  CHECK(kept({1.0f, 1.0f, 1.0f}, TopNSigma(0.01f)).size() == 3);
  CHECK(kept({-INFINITY, 1.0f}, TopNSigma(1.0f)) == std::set<TokenId>{1});
  CHECK(kept({3.0e38f, -3.0e38f, 2.9e38f}, TopNSigma(1.0f)) == std::set<TokenId>{0, 2});
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    auto row =
        seed % 2 == 0 ? mica::test::smooth_logits(1 + seed * 5, seed) : mica::test::coarse_logits(400, seed);
    row[row.size() / 2] = seed % 4 == 3 ? -INFINITY : 9.0f;
    for (const float n : {0.1f, 0.7f, 1.0f, 2.3f, 50.0f}) {
      CAPTURE(seed);
      CAPTURE(n);
      CHECK(kept(row, TopNSigma(n)) == above_sigma(row, static_cast<double>(n)));
    }
  }
  // Temperature changes no set.
  Row cold(mica::test::smooth_logits(300, 1)), plain(mica::test::smooth_logits(300, 1));
  Temperature(0.3f).apply(*cold);
  TopNSigma(0.9f).apply(*cold);
  TopNSigma(0.9f).apply(*plain);
  CHECK(cold.ids() == plain.ids());
}

TEST_CASE("xtc drops the choices above the threshold but the least probable one") {
  const std::vector<float> logits = {std::log(0.15f), std::log(0.5f), std::log(0.05f), std::log(0.3f)};
  CHECK(kept(logits, xtc(1.0f, 0.1f)) == std::set<TokenId>{0, 2});
  CHECK(kept(logits, xtc(1.0f, 0.2f)) == std::set<TokenId>{0, 2, 3});
  CHECK(kept(logits, xtc(1.0f, 0.4f)).size() == 4);  // one alone stays
  CHECK(kept(logits, xtc(1.0f, 0.0f)) == std::set<TokenId>{2});
  CHECK(kept(logits, xtc(0.0f, 0.1f)).size() == 4);
  CHECK(kept({1.0f, 1.0f}, xtc(1.0f, 0.51f)).size() == 2);
  CHECK(kept({1.0f, 1.0f}, xtc(1.0f, 0.5f)) == std::set<TokenId>{1});
  CHECK(kept({1.0f, -INFINITY, 0.0f}, xtc(1.0f, 0.0f)) ==
        std::set<TokenId>{1, 2});  // one possible token stays
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const auto row = mica::test::coarse_logits(1 + seed % 40, seed);
    for (const float threshold : {0.01f, 0.05f, 0.1f, 0.3f}) {
      CAPTURE(seed);
      CAPTURE(threshold);
      CHECK(kept(row, xtc(1.0f, threshold, seed)) == without_top(row, static_cast<double>(threshold)));
    }
  }
}

TEST_CASE("xtc acts as often as its probability says, and draws one number each time") {
  const std::vector<float> logits(4, 0.0f);
  Xtc stage = xtc(0.3f, 0.1f, 7);
  mica::CounterRng same(7);
  int acted = 0;
  for (int i = 0; i < 20000; ++i) {
    Row row(logits);
    stage.apply(*row);
    CHECK((row->size() == 1) == (same.uniform() < static_cast<double>(0.3f)));
    acted += row->size() == 1 ? 1 : 0;
  }
  CHECK(acted == doctest::Approx(6000).epsilon(0.033));  // three standard deviations: 194
}

TEST_CASE("a bias is added to the logit of its token, in any order of candidates") {
  const LogitBias bias({{1, 2.5f}, {3, -INFINITY}, {1, 1.0f}, {900, 5.0f}, {4, 1.0f}});
  for (const bool sorted : {false, true}) {
    Row row({0.0f, 1.0f, 9.0f, 8.0f, -INFINITY});
    if (sorted) row->sort_best(5);
    LogitBias(bias).apply(*row);
    CHECK(row->sorted() == 0);
    for (const auto& each : row->span())
      CHECK(each.logit == std::vector<float>{0.0f, 4.5f, 9.0f, -INFINITY, -INFINITY}[each.id]);
  }
  Row largest({std::numeric_limits<float>::max(), 0.0f});
  LogitBias({{0, 1e9f}}).apply(*largest);
  CHECK((*largest)[0].logit == std::numeric_limits<float>::max());
}

TEST_CASE("dynamic temperature follows the entropy of the candidates") {
  const auto scale = [](const std::vector<float>& logits, float t, float range, float exponent) {
    Row row(logits);
    Temperature(t, range, exponent).apply(*row);
    return -1.0 / static_cast<double>((*row)[1].logit);  // logits[1] is the best less one
  };
  for (const float exponent : {0.0f, 0.5f, 1.0f, 3.0f}) {
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
      auto logits = mica::test::smooth_logits(20, seed);
      logits[0] = 9.0f, logits[1] = 8.0f;
      double entropy = 0;
      for (const double p : mica::test::probabilities(logits)) entropy -= p * std::log(p);
      const double part = std::pow(entropy / std::log(20.0), static_cast<double>(exponent));
      CHECK(scale(logits, 1.2f, 0.7f, exponent) == doctest::Approx(0.5 + 1.4 * part).epsilon(1e-4));
      CHECK(scale(logits, 1.2f, 2.0f, exponent) == doctest::Approx(std::max(1e-6, 3.2 * part)).epsilon(1e-4));
      CHECK(scale(logits, 1.2f, 0.0f, exponent) == doctest::Approx(1.2).epsilon(1e-6));
    }
  }
  Row flat(std::vector<float>(8, 3.0f));
  Temperature(0.5f, 0.25f).apply(*flat);
  CHECK(flat.values() == std::vector<float>(8, 0.0f));
  Row certain({0.0f, -INFINITY, -1000.0f});
  Temperature(0.5f, 1.0f).apply(*certain);
  certain->softmax();
  CHECK((*certain)[0].p == 1.0f);
  Row one({5.0f});
  Temperature(0.5f, 0.5f).apply(*one);
  CHECK(one.values() == std::vector<float>{0.0f});
}

TEST_CASE("no stage that narrows leaves nothing, or what it was not given") {
  const std::vector<float> limits = {0.0f, 1e-6f, 0.01f, 0.3f, 0.5f, 1.0f};
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    auto logits = mica::test::coarse_logits(1 + seed % 90, seed);
    for (std::size_t i = 1; i < logits.size(); i += 3) logits[i] = seed % 5 == 0 ? -INFINITY : logits[i];
    for (const float p : limits) {
      for (int stage = 0; stage < 4; ++stage) {
        Row row(logits);
        if (seed % 3 == 1) row->sort_best(logits.size() / 2);
        if (seed % 3 == 2) row->keep_best(7);
        const auto before = row.ids();
        if (stage == 0) Typical(p).apply(*row);
        if (stage == 1) TopNSigma(p * 4.0f).apply(*row);
        if (stage == 2) xtc(1.0f, p, seed).apply(*row);
        if (stage == 3) TopP(p).apply(*row);
        const auto after = row.ids();
        CAPTURE(stage);
        CAPTURE(seed);
        CAPTURE(p);
        REQUIRE(!after.empty());
        CHECK(contains({before.begin(), before.end()}, {after.begin(), after.end()}));
        CHECK(std::any_of(row->span().begin(), row->span().end(),
                          [](const auto& c) { return c.logit > -INFINITY; }));
      }
    }
  }
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
                       "temperature: found 0, allowed 1e-06 to 10000, or 0 for always the best token",
                       mica::Error);
  CHECK_THROWS_WITH_AS(Temperature(1.0f, -1.0f), "dynatemp-range: found -1, allowed 0 to 10000", mica::Error);
  CHECK_THROWS_WITH_AS(Temperature(1.0f, 0.5f, nan), "dynatemp-exp: found nan, allowed 0 to 1000",
                       mica::Error);
  CHECK_THROWS_WITH_AS(Typical(1.5f), "typical: found 1.5, allowed 0 to 1", mica::Error);
  CHECK_THROWS_WITH_AS(TopNSigma{nan}, "top-n-sigma: found nan, allowed -1 to 1000", mica::Error);
  CHECK_THROWS_WITH_AS(xtc(2.0f, 0.1f), "xtc-probability: found 2, allowed 0 to 1", mica::Error);
  CHECK_THROWS_WITH_AS(xtc(0.5f, -0.1f), "xtc-threshold: found -0.1, allowed 0 to 1", mica::Error);
  CHECK_THROWS_WITH_AS(LogitBias({{0, INFINITY}}),
                       "logit-bias: found inf, allowed -1e+09 to 1e+09, or -inf: never the token",
                       mica::Error);
  CHECK_THROWS_AS(LogitBias({{0, nan}}), mica::Error);
}

}  // namespace stages_test
