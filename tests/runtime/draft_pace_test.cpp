// SPDX-License-Identifier: Apache-2.0

#include "mica/runtime/detail/draft_pace.hpp"

#include <doctest/doctest.h>

#include <functional>

namespace mica::test::draft_pace_test {
namespace {

/// What k drafts cost, in steps without.
using Price = std::function<double(std::size_t)>;

constexpr std::size_t tokens = 2000;

/// Steps that a text takes, in steps without drafts, when `right` of the drafts of every step are so, as far
/// as there are any.
double steps(std::size_t right, const Price& price, std::size_t max = 8) {
  DraftPace pace;
  double all = 0;
  for (std::size_t written = 0; written < tokens; ++written) {
    const std::size_t drafts = pace.choose(max), accepted = std::min(drafts, right);
    const double cost = drafts == 0 ? 1 : price(drafts);
    pace.count(drafts, accepted, 0.02 * cost);
    all += cost;
    written += accepted;
  }
  return all;
}

double cheap(std::size_t k) { return 1 + 0.05 * static_cast<double>(k); }
double steep(std::size_t k) { return k < 3 ? 1 + 0.15 * static_cast<double>(k) : 3; }

}  // namespace

TEST_CASE("where nothing can be guessed guesses cost about one per cent, and a few steps at the beginning") {
  for (const Price& price : {Price(cheap), Price(steep)}) {
    const double found = steps(0, price);
    CHECK(found > tokens);
    CHECK(found < tokens * 1.012 + 3);
  }
}

TEST_CASE("where everything can be guessed a step has the drafts that are best for what they cost") {
  CHECK(steps(8, cheap) < 1.04 * tokens / 9 * cheap(8) + 10);
  CHECK(steps(8, steep) < 1.04 * tokens / 3 * steep(2) + 20);  // two drafts for 1.3 steps, or eight for three
  CHECK(steps(8, steep, 2) < 1.04 * tokens / 3 * steep(2) + 10);
}

TEST_CASE("three wrong steps at the beginning do not end the drafting of a text that is easy to guess") {
  DraftPace pace;
  double all = 0;
  int wrong = 0;
  for (std::size_t written = 0; written < 64;) {
    const std::size_t drafts = pace.choose(3);
    const bool is_wrong = drafts > 0 && wrong < 3;
    wrong += is_wrong ? 1 : 0;
    const std::size_t accepted = is_wrong ? 0 : drafts;
    pace.count(drafts, accepted, 0.02 * cheap(drafts));
    all += cheap(drafts);
    written += 1 + accepted;
  }
  CHECK(wrong == 3);
  CHECK(all < 25);
}

TEST_CASE("a draft that is right and costs more than a step is not made for long") {
  CHECK(steps(1, [](std::size_t k) { return 1 + 1.5 * static_cast<double>(k); }) < tokens * 1.05);
}

TEST_CASE("a first step that waited for memory does not make drafts look cheap") {
  DraftPace pace;
  double all = 0;
  for (std::size_t step = 0; step < tokens; ++step) {
    const std::size_t drafts = pace.choose(3);
    const double cost = drafts == 0 ? 1 : 5;
    pace.count(drafts, 0, step == 0 ? 2.0 : 0.02 * cost);
    all += cost;
  }
  CHECK(all < tokens * 1.05);
}

TEST_CASE("the first steps have no drafts, and no step has more than allowed") {
  DraftPace pace;
  for (std::size_t i = 0; i < DraftPace::plain_steps; ++i) {
    CHECK(pace.choose(8) == 0);
    pace.count(0, 0, 0.02);
  }
  CHECK(pace.choose(0) == 0);
  CHECK(pace.choose(1) == 1);
  CHECK(pace.choose(8) >= 1);
  CHECK(pace.choose(1000) <= draft_limit);
}

TEST_CASE(
    "a text that stops repeating itself is found out in a few steps, and one that begins to, in a hundred") {
  DraftPace pace;
  for (int i = 0; i < 4; ++i) pace.count(0, 0, 0.02);
  for (int i = 0; i < 20; ++i) pace.count(4, 4, 0.025);
  int wrong = 0;
  for (; pace.choose(4) > 0; ++wrong) pace.count(4, 0, 0.03);
  CHECK(wrong <= 8);
  int waited = 0;
  for (; pace.choose(4) == 0; ++waited) pace.count(0, 0, 0.02);
  CHECK(waited <= 100);
}

}  // namespace mica::test::draft_pace_test
