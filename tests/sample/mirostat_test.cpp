// SPDX-License-Identifier: Apache-2.0
//
// Mirostat against Algorithms 1 and 2 of its paper, written out, and the surprise that it steers.

#include "mica/sample/mirostat.hpp"

#include "mica/base/error.hpp"
#include "mica/sample/chain.hpp"
#include "rows.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace mirostat_test {

using mica::CounterRng;
using mica::sample::Dist;
using mica::sample::Mirostat;
using mica::sample::TokenId;
using mica::test::Row;

namespace {

// The probabilities of a row in falling order.
std::vector<double> ranked(const std::vector<float>& logits) {
  auto p = mica::test::probabilities(logits);
  std::sort(p.begin(), p.end(), std::greater<>());
  return p;
}

// How many of the best tokens a version keeps for mu.
double kept(int version, const std::vector<double>& p, double mu) {
  if (version == 2) {
    double n = 0;
    while (n < static_cast<double>(p.size()) && -std::log2(p[static_cast<std::size_t>(n)]) <= mu) ++n;
    return std::max(n, 1.0);
  }
  double products = 0, squares = 0;
  for (std::size_t i = 1; i < std::min<std::size_t>(100, p.size()); ++i) {
    const double t = std::log((static_cast<double>(i) + 1.0) / static_cast<double>(i));
    products += t * std::log(p[i - 1] / p[i]);
    squares += t * t;
  }
  const double s = products / squares;
  const double k =
      std::pow((s - 1) * std::pow(2.0, mu) / (1 - std::pow(static_cast<double>(p.size()), 1 - s)), 1 / s);
  return std::clamp(std::floor(k), 1.0, static_cast<double>(p.size()));
}

// Logits of Zipf's law: probabilities as rank^-s.
std::vector<float> zipf(std::size_t n, float s) {
  std::vector<float> out(n);
  for (std::size_t i = 0; i < n; ++i) out[i] = -s * std::log(static_cast<float>((i * 7) % n + 1));
  return out;
}

double mean_surprise(int version, float tau, const std::vector<float>& logits) {
  Mirostat mirostat(version, tau, 0.1f, CounterRng(3));
  double sum = 0;
  for (int i = 0; i < 4000; ++i) {
    const float before = mirostat.mu();
    Row row(logits);
    mirostat.apply(*row);
    REQUIRE(row->size() == 1);
    const double surprise = -std::log2(static_cast<double>((*row)[0].p));
    CHECK(mirostat.mu() ==
          doctest::Approx(static_cast<double>(before) - 0.1 * (surprise - static_cast<double>(tau))));
    if (i >= 1000) sum += surprise / 3000.0;
  }
  return sum;
}

}  // namespace

TEST_CASE("version 0 is a plain draw, with the same bits") {
  Mirostat off(0, 5.0f, 0.1f, CounterRng(9));
  Dist dist(9);
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Row a(mica::test::smooth_logits(50, seed)), b(mica::test::smooth_logits(50, seed));
    off.apply(*a);
    dist.apply(*b);
    REQUIRE(a.ids() == b.ids());
  }
  CHECK_FALSE(off.active());
  CHECK(off.mu() == 10.0f);
}

TEST_CASE("a token is one of those that the algorithm keeps, drawn among them") {
  for (const int version : {1, 2}) {
    CAPTURE(version);
    for (const float mu : {0.5f, 2.0f, 4.0f, 7.0f}) {
      CAPTURE(mu);
      const auto logits = version == 1 ? zipf(997, 1.4f) : mica::test::smooth_logits(300, 4);
      const auto p = ranked(logits);
      const auto n = static_cast<std::size_t>(kept(version, p, static_cast<double>(mu)));
      double all = 0;
      for (std::size_t i = 0; i < n; ++i) all += p[i];
      const auto by_id = mica::test::probabilities(logits);
      std::size_t lowest = 0;
      for (std::uint64_t seed = 0; seed < 2000; ++seed) {
        Mirostat mirostat(version, 3.0f, 0.0f, CounterRng(seed));
        mirostat.restore(CounterRng(seed), mu);
        Row row(logits);
        mirostat.apply(*row);
        const double drawn = by_id[(*row)[0].id];
        const auto rank = static_cast<std::size_t>(
            std::lower_bound(p.begin(), p.end(), drawn, std::greater<>()) - p.begin());
        lowest = std::max(lowest, rank);
        REQUIRE(rank < n);
        CHECK(static_cast<double>((*row)[0].p) == doctest::Approx(drawn / all).epsilon(1e-4));
      }
      if (n <= 20) CHECK(lowest + 1 == n);  // the last of few is drawn sometimes
    }
  }
}

TEST_CASE("the mean surprise of the drawn tokens comes to the target, from below and from above") {
  const auto flat_tail = mica::test::smooth_logits(2000, 2);
  for (const float tau : {1.0f, 2.5f, 4.0f}) {
    CAPTURE(tau);
    CHECK(mean_surprise(2, tau, flat_tail) == doctest::Approx(tau).epsilon(0.03));
    CHECK(mean_surprise(2, tau, zipf(5003, 1.1f)) == doctest::Approx(tau).epsilon(0.03));
    CHECK(mean_surprise(1, tau, zipf(5003, 1.1f)) == doctest::Approx(tau).epsilon(0.03));
  }
}

TEST_CASE("rows without a choice leave one token, and mu a number") {
  for (const int version : {1, 2}) {
    CAPTURE(version);
    Mirostat mirostat(version, 5.0f, 10.0f, CounterRng(1));
    for (int i = 0; i < 50; ++i) {
      for (const auto& logits : {std::vector<float>{2.0f}, std::vector<float>(40, 1.0f),
                                 std::vector<float>{-INFINITY, 0.0f, -INFINITY},
                                 std::vector<float>{3.0e38f, -3.0e38f}, std::vector<float>{0.0f, 0.0f}}) {
        Row row(logits);
        mirostat.apply(*row);
        REQUIRE(row->size() == 1);
        REQUIRE(logits[(*row)[0].id] > -INFINITY);
        REQUIRE(std::isfinite(mirostat.mu()));
      }
    }
    CHECK(mirostat.rng().counter() == 250);
  }
}

TEST_CASE("a restored mirostat continues; without a mu it begins") {
  Mirostat mirostat(2, 3.0f, 0.1f, CounterRng(5));
  const auto logits = mica::test::smooth_logits(100, 1);
  const auto draw = [&logits](Mirostat& from) {
    Row row(logits);
    from.apply(*row);
    return (*row)[0].id;
  };
  for (int i = 0; i < 20; ++i) draw(mirostat);
  Mirostat other(2, 3.0f, 0.1f, CounterRng(0));
  other.restore(mirostat.rng(), mirostat.mu());
  for (int i = 0; i < 20; ++i) CHECK(draw(other) == draw(mirostat));
  other.restore(CounterRng(5), 0.0f);
  CHECK(other.mu() == 6.0f);
}

TEST_CASE("values out of range are refused with what was found and what is allowed") {
  using mica::Error;
  CHECK_THROWS_WITH_AS(Mirostat(3, 5.0f, 0.1f, CounterRng()), "mirostat: found 3, allowed 0 to 2", Error);
  CHECK_THROWS_WITH_AS(Mirostat(2, -1.0f, 0.1f, CounterRng()), "mirostat-ent: found -1, allowed 0 to 100",
                       Error);
  CHECK_THROWS_WITH_AS(Mirostat(2, 5.0f, NAN, CounterRng()), "mirostat-lr: found nan, allowed 0 to 10",
                       Error);
}

}  // namespace mirostat_test
