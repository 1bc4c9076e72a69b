// SPDX-License-Identifier: Apache-2.0

#include "mica/sample/penalties.hpp"

#include "mica/alloc/budgeted.hpp"
#include "mica/base/error.hpp"
#include "rows.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace penalties_test {

using mica::sample::Penalties;
using mica::sample::PenaltyOptions;
using mica::sample::TokenId;
using mica::test::Row;

namespace {

std::vector<float> penalised(const PenaltyOptions& options, const std::vector<TokenId>& text,
                             const std::vector<float>& logits) {
  Penalties<> penalties(options);
  for (const TokenId token : text) penalties.accept(token);
  Row row(logits);
  penalties.apply(*row);
  return row.values();
}

}  // namespace

TEST_CASE("the repeat penalty divides positive logits and multiplies the others, once per token") {
  CHECK(penalised({64, 2.0f, 0.0f, 0.0f}, {0, 1, 1, 1, 2}, {4.0f, -3.0f, 0.0f, 8.0f}) ==
        std::vector<float>{2.0f, -6.0f, 0.0f, 8.0f});
}

TEST_CASE("the frequency penalty counts occurrences, the presence penalty does not") {
  CHECK(penalised({64, 1.0f, 0.5f, 0.0f}, {1, 1, 1, 2}, {1.0f, 1.0f, 1.0f}) ==
        std::vector<float>{1.0f, -0.5f, 0.5f});
  CHECK(penalised({64, 1.0f, 0.0f, 0.25f}, {1, 1, 1, 2}, {1.0f, 1.0f, 1.0f}) ==
        std::vector<float>{1.0f, 0.75f, 0.75f});
  CHECK(penalised({64, 2.0f, 0.5f, 0.25f}, {0, 0}, {8.0f, 8.0f}) == std::vector<float>{2.75f, 8.0f});
  CHECK(penalised({64, 1.0f, -1.0f, 0.0f}, {0}, {1.0f, 1.0f}) == std::vector<float>{2.0f, 1.0f});
}

TEST_CASE("only the last n tokens count") {
  CHECK(penalised({2, 1.0f, 1.0f, 0.0f}, {0, 0, 1, 2}, {0.0f, 0.0f, 0.0f}) ==
        std::vector<float>{0.0f, -1.0f, -1.0f});
  CHECK(penalised({2, 1.0f, 1.0f, 0.0f}, {0, 1, 1, 2, 2}, {0.0f, 0.0f, 0.0f}) ==
        std::vector<float>{0.0f, 0.0f, -2.0f});
  CHECK(penalised({0, 2.0f, 1.0f, 1.0f}, {0, 1, 2}, {1.0f, 1.0f, 1.0f}) ==
        std::vector<float>{1.0f, 1.0f, 1.0f});
}

TEST_CASE("a text of tokens beyond the row, or none at all, changes nothing") {
  CHECK(penalised({8, 2.0f, 1.0f, 1.0f}, {900, 4000000000u}, {1.0f, 2.0f}) == std::vector<float>{1.0f, 2.0f});
  CHECK(penalised({8, 2.0f, 1.0f, 1.0f}, {}, {1.0f, 2.0f}) == std::vector<float>{1.0f, 2.0f});
}

TEST_CASE("penalties after a top-k stage are those before it") {
  const auto logits = mica::test::smooth_logits(100, 5);
  Penalties<> penalties({16, 1.3f, 0.2f, 0.1f});
  for (TokenId token = 0; token < 40; ++token) penalties.accept(token * 7 % 30);
  Row by_id(logits);
  penalties.apply(*by_id);
  Row sorted(logits);
  sorted->keep_best(50);
  penalties.apply(*sorted);
  for (const auto& candidate : sorted->span()) CHECK(candidate.logit == (*by_id)[candidate.id].logit);
  CHECK(sorted->sorted() == 0);
}

TEST_CASE("no penalty makes a logit infinite or a forbidden token possible") {
  const float max_value = std::numeric_limits<float>::max();
  const auto out = penalised({8, 1e-3f, -1e3f, 0.0f}, {0, 1, 2}, {max_value, -max_value, -INFINITY});
  CHECK(out[0] == max_value);
  CHECK(out[2] == -INFINITY);
  CHECK(penalised({8, 1e3f, 1e3f, 0.0f}, {0}, {-max_value})[0] == -max_value);
}

TEST_CASE("options out of range and a refusing ledger are errors that say so") {
  CHECK_THROWS_WITH_AS(Penalties<>({-1, 1.0f, 0.0f, 0.0f}),
                       "repeat-last-n: found -1, allowed 0 (none) to 1048576", mica::Error);
  CHECK_THROWS_WITH_AS(Penalties<>({64, 0.0f, 0.0f, 0.0f}), "repeat-penalty: found 0, allowed 0.001 to 1000",
                       mica::Error);
  mica::budget::Ledger ledger(100);
  using Budgeted = mica::alloc::Budgeted<mica::alloc::Aligned>;
  try {
    const Penalties<Budgeted> refused({64, 2.0f, 0.0f, 0.0f},
                                      Budgeted(ledger, mica::budget::Account::logits));
    FAIL("64 tokens do not fit 100 bytes");
  } catch (const mica::Error& error) {
    CHECK(error.code() == mica::ErrorCode::budget);
  }
  CHECK(ledger.used() == 0);
}

}  // namespace penalties_test
