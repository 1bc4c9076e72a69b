// SPDX-License-Identifier: Apache-2.0

#include "mica/sample/candidates.hpp"

#include "rows.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

namespace candidates_test {

using mica::sample::better;
using mica::sample::Candidate;
using mica::sample::Candidates;
using mica::sample::TokenId;
using mica::test::Row;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

// The ids of a row from best to worst, by a full stable sort.
std::vector<TokenId> ranking(const std::vector<float>& logits) {
  std::vector<TokenId> ids(logits.size());
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<TokenId>(i);
  std::stable_sort(ids.begin(), ids.end(), [&](TokenId a, TokenId b) { return logits[a] > logits[b]; });
  return ids;
}

bool fills(const std::vector<float>& logits) {
  std::vector<Candidate> storage(logits.size());
  return Candidates(storage).fill(logits);
}

bool fills_best(const std::vector<float>& logits, std::size_t k) {
  std::vector<Candidate> storage(k);
  return Candidates(storage).fill_best(logits, k);
}

}  // namespace

TEST_CASE("a row with a NaN or an infinite logit, or without any possible token, is refused") {
  CHECK(fills({-infinity, 1.0f, -infinity}));
  CHECK_FALSE(fills({}));
  CHECK_FALSE(fills({-infinity, -infinity}));
  CHECK_FALSE(fills({1.0f, infinity}));
  for (std::size_t at = 0; at < 5; ++at) {
    std::vector<float> row(5, 2.0f);
    row[at] = not_a_number;
    CAPTURE(at);
    CHECK_FALSE(fills(row));
    CHECK_FALSE(fills_best(row, 2));
    row[at] = infinity;
    CHECK_FALSE(fills_best(row, 2));
  }
  CHECK(fills_best({-infinity, 1.0f, -infinity}, 2));
  CHECK_FALSE(fills_best({-infinity, -infinity, -infinity}, 2));
}

TEST_CASE("any number of best candidates comes to the front in order, ties by id") {
  const auto logits = mica::test::coarse_logits(301, 7);
  const auto expected = ranking(logits);
  for (const std::size_t n : {1u, 2u, 5u, 37u, 38u, 150u, 300u, 301u}) {
    CAPTURE(n);
    Row row(logits);
    row->sort_best(n);
    CHECK(row->size() == 301);
    CHECK(row->sorted() == n);
    const auto ids = row.ids();
    CHECK(std::equal(expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(n), ids.begin()));
    row->sort_best(301);  // the rest is still there
    CHECK(row.ids() == expected);
  }
}

TEST_CASE("taking in only the best equals taking in all and keeping the best") {
  for (const std::size_t n : {1u, 2u, 64u, 1000u}) {
    const auto logits = mica::test::coarse_logits(n, n);
    for (const std::size_t k : {1u, 2u, 40u, 999u, 2000u}) {
      CAPTURE(n);
      CAPTURE(k);
      Row all(logits);
      all->keep_best(k);
      std::vector<Candidate> storage(k);
      Candidates best(storage);
      REQUIRE(best.fill_best(logits, k));
      REQUIRE(best.size() == all->size());
      for (std::size_t i = 0; i < best.size(); ++i) CHECK(best[i].id == (*all)[i].id);
      CHECK(best.sorted() == best.size());
    }
  }
}

TEST_CASE("dropping candidates keeps the others' order and what is known of it") {
  Row row({1.0f, 5.0f, 3.0f, 4.0f, 2.0f});
  row->sort_best(3);  // 1 3 2 | 0 4 in any order
  row->keep_if([](const Candidate& candidate) { return candidate.id != 3; });
  CHECK(row->size() == 4);
  CHECK(row->sorted() == 2);
  CHECK((*row)[0].id == 1);
  CHECK((*row)[1].id == 2);
  CHECK_FALSE(row->by_id());
}

TEST_CASE("probabilities add up to one and follow the logits, however large") {
  Row row({88.0f, 90.0f, -3.0e38f, 90.0f, -infinity});
  row->softmax();
  double sum = 0.0;
  for (const Candidate& candidate : row->span()) sum += static_cast<double>(candidate.p);
  CHECK(sum == doctest::Approx(1.0).epsilon(1e-6));
  CHECK((*row)[1].p == (*row)[3].p);
  CHECK((*row)[0].p == doctest::Approx(std::exp(-2.0) / (2.0 + std::exp(-2.0))).epsilon(1e-6));
  CHECK((*row)[2].p == 0.0f);
  CHECK((*row)[4].p == 0.0f);
}

}  // namespace candidates_test
