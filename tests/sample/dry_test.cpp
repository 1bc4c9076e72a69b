// SPDX-License-Identifier: Apache-2.0
//
// DRY against its description: for each token, the longest sequence before an earlier occurrence of it that is
// also the end of the text, found by comparing all pairs of positions.

#include "mica/sample/dry.hpp"

#include "mica/alloc/budgeted.hpp"
#include "mica/alloc/counting.hpp"
#include "mica/base/error.hpp"
#include "mica/base/rng.hpp"
#include "rows.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <vector>

namespace dry_test {

using mica::sample::Dry;
using mica::sample::DryOptions;
using mica::sample::TokenId;
using mica::test::Row;
using Tokens = std::vector<TokenId>;

namespace {

std::vector<float> applied(const DryOptions& options, const Tokens& text, const std::vector<float>& logits) {
  Dry<> dry(options);
  for (const TokenId token : text) dry.accept(token);
  Row row(logits);
  dry.apply(*row);
  return row.values();
}

// Where a sequence stands in a text, as the position behind it; 0: nowhere.
std::size_t last_end(const Tokens& text, const Tokens& sequence) {
  const auto at = std::find_end(text.begin(), text.end(), sequence.begin(), sequence.end());
  if (sequence.empty() || at == text.end()) return 0;
  return static_cast<std::size_t>(at - text.begin()) + sequence.size();
}

std::vector<float> specified(const DryOptions& options, Tokens text, std::vector<float> logits) {
  const auto last_n = static_cast<std::size_t>(options.last_n);
  if (text.size() > last_n) text.erase(text.begin(), text.end() - static_cast<std::ptrdiff_t>(last_n));
  std::size_t begin = 0;  // of the tokens that a repetition may have
  for (const Tokens& breaker : options.breakers) begin = std::max(begin, last_end(text, breaker));
  std::map<TokenId, std::size_t> longest;
  for (std::size_t next = 1; next < text.size(); ++next) {  // text[next] followed what the text ends with
    std::size_t length = 0;
    while (length < next && text.size() - 1 - length >= begin &&
           text[next - 1 - length] == text[text.size() - 1 - length]) {
      ++length;
      if (length == text.size()) break;
    }
    longest[text[next]] = std::max(longest[text[next]], length);
  }
  for (const auto& [token, length] : longest) {
    const bool breaks =
        std::find(options.breakers.begin(), options.breakers.end(), Tokens{token}) != options.breakers.end();
    if (token >= logits.size() || breaks || length < static_cast<std::size_t>(options.allowed_length))
      continue;
    double penalty = static_cast<double>(options.multiplier);
    for (std::size_t i = static_cast<std::size_t>(options.allowed_length); i < length; ++i)
      penalty *= static_cast<double>(options.base);
    logits[token] = static_cast<float>(
        std::max(static_cast<double>(logits[token]) - penalty, -double{std::numeric_limits<float>::max()}));
  }
  return logits;
}

DryOptions usual(float multiplier = 1.0f) { return {.multiplier = multiplier, .base = 2.0f, .last_n = 100}; }

const std::vector<float> flat(10, 1.0f);

}  // namespace

TEST_CASE("the token that would extend a repetition is penalised by its length beyond the allowed one") {
  // 1 2 3 4 ... 1 2 3: 4 would make four, three tokens are repeated, two are allowed
  std::vector<float> expected = flat;
  expected[4] = 1.0f - 2.0f;
  CHECK(applied(usual(), {1, 2, 3, 4, 9, 1, 2, 3}, flat) == expected);
  expected[4] = 1.0f - 1.0f;
  CHECK(applied(usual(), {1, 2, 3, 4, 9, 2, 3}, flat) == expected);
  CHECK(applied(usual(), {1, 2, 3, 4, 9, 3}, flat) == flat);
  DryOptions strict = usual(0.5f);
  strict.allowed_length = 1;
  expected[4] = 0.5f;
  CHECK(applied(strict, {1, 2, 3, 4, 9, 3}, flat) == expected);
  strict.allowed_length = 4;
  CHECK(applied(strict, {1, 2, 3, 4, 9, 1, 2, 3}, flat) == flat);
}

TEST_CASE("of several repetitions before a token the longest counts, and different tokens have their own") {
  std::vector<float> expected = flat;
  expected[4] = 1.0f - 2.0f;  // after 1 2 3
  expected[5] = 1.0f - 1.0f;  // after 2 3
  CHECK(applied(usual(), {1, 2, 3, 4, 8, 2, 3, 4, 7, 2, 3, 5, 9, 1, 2, 3}, flat) == expected);
}

TEST_CASE("a token that is repeated alone is penalised more with each repetition") {
  std::vector<float> expected = flat;
  for (std::size_t n = 3; n < 8; ++n) {
    expected[6] = 1.0f - std::exp2(static_cast<float>(n) - 3.0f);
    CHECK(applied(usual(), Tokens(n, 6), flat) == expected);
  }
}

TEST_CASE("no repetition extends over a breaker, and breakers of one token are not penalised") {
  DryOptions options = usual();
  options.breakers = {{2}};
  std::vector<float> expected = flat;
  CHECK(applied(options, {1, 2, 3, 4, 9, 1, 2, 3}, flat) == flat);  // one token after the breaker
  expected[5] = 0.0f;
  CHECK(applied(options, {2, 3, 4, 5, 9, 2, 3, 4}, flat) == expected);
  CHECK(applied(options, {3, 4, 2, 9, 3, 4}, flat) == flat);  // the next one would be the breaker
  options.breakers = {{4, 5}};
  expected = flat;
  expected[6] = 0.0f;
  CHECK(applied(options, {4, 5, 1, 2, 6, 9, 4, 5, 1, 2}, flat) == expected);
  expected[6] = 1.0f - 4.0f;  // 4 alone breaks nothing
  CHECK(applied(options, {4, 3, 1, 2, 6, 9, 4, 3, 1, 2}, flat) == expected);
  expected = flat;
  expected[5] = 0.0f;  // nor is the end of a longer one free
  CHECK(applied(options, {3, 4, 5, 9, 3, 4}, flat) == expected);
  CHECK(applied(options, {3, 4, 5}, flat) == flat);
}

TEST_CASE("of breakers that overlap, the one that ends last counts") {
  DryOptions options = usual();
  options.breakers = {{1, 2, 3, 4}, {2, 3}, {9, 9}};
  const Tokens text = {1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6};
  CHECK(applied(options, text, flat) == specified(options, text, flat));
  std::vector<float> expected = flat;
  expected[7] = 0.0f;
  CHECK(applied(options, text, flat) == expected);
}

TEST_CASE("on random texts the penalties are those of the description") {
  mica::CounterRng rng(4);
  std::size_t changed = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    const auto below = [&rng](std::size_t n) { return static_cast<std::size_t>(rng.next() % n); };
    const std::size_t words = 2 + below(5);  // few, so that much is repeated
    Tokens text(below(60));
    for (TokenId& token : text) token = static_cast<TokenId>(below(words));
    DryOptions options{.multiplier = static_cast<float>(rng.uniform() * 2.0 + 0.01),
                       .base = static_cast<float>(1.0 + rng.uniform()),
                       .allowed_length = static_cast<std::int64_t>(1 + below(4)),
                       .last_n = static_cast<std::int64_t>(below(50))};
    for (std::size_t i = below(4); i > 0; --i) {
      Tokens breaker(1 + below(4));
      for (TokenId& token : breaker) token = static_cast<TokenId>(below(words));
      options.breakers.push_back(breaker);
    }
    const auto logits = mica::test::smooth_logits(5, static_cast<std::uint64_t>(trial));
    const auto got = applied(options, text, logits);
    const auto want = specified(options, text, logits);
    CAPTURE(trial);
    for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == doctest::Approx(want[i]).epsilon(1e-5));
    changed += got != logits ? 1 : 0;
  }
  CHECK(changed > 500);  // the comparison is not of texts without repetitions
}

TEST_CASE("penalties after a stage that moves candidates are those before it") {
  const auto logits = mica::test::smooth_logits(40, 8);
  Dry<> dry(usual());
  mica::CounterRng rng(1);
  for (int i = 0; i < 60; ++i) dry.accept(static_cast<TokenId>(rng.next() % 3));
  Row by_id(logits);
  dry.apply(*by_id);
  CHECK(by_id.values() != logits);
  Row sorted(logits);
  sorted->keep_best(30);
  dry.apply(*sorted);
  for (const auto& candidate : sorted->span()) CHECK(candidate.logit == (*by_id)[candidate.id].logit);
  CHECK(sorted->sorted() == 0);
}

TEST_CASE("a long repetition makes a token unlikely, never impossible, and forbidden tokens stay so") {
  DryOptions options{.multiplier = 1e3f, .base = 1e3f, .last_n = 5000};
  std::vector<float> logits = {1.0f, -INFINITY};
  CHECK(applied(options, Tokens(5000, 0), logits) ==
        std::vector<float>{-std::numeric_limits<float>::max(), -INFINITY});
  CHECK(applied(options, Tokens(5000, 1), logits) == logits);
  CHECK(applied(options, Tokens(5000, 4000000000u), logits) == logits);
}

TEST_CASE("a text of a million equal tokens is searched in linear steps") {
  constexpr std::size_t n = std::size_t{1} << 20;
  DryOptions options = usual();
  options.last_n = n;
  options.breakers = {{7, 7}, {8}};
  // A search of all pairs would take hours.
  CHECK(applied(options, Tokens(n, 3), flat)[3] == -std::numeric_limits<float>::max());
  Tokens periodic(n);
  for (std::size_t i = 0; i < n; ++i) periodic[i] = static_cast<TokenId>(i % 3);
  const auto out = applied(options, periodic, flat);
  CHECK(out[1] == -std::numeric_limits<float>::max());
  CHECK(out[0] == 1.0f);
}

TEST_CASE("without a multiplier, tokens or an old text nothing changes, and no memory is taken") {
  const Tokens text = {1, 2, 3, 1, 2};
  CHECK(applied(usual(0.0f), text, flat) == flat);
  CHECK_FALSE(Dry<>(usual(0.0f)).active());
  DryOptions none = usual();
  none.last_n = 0;
  CHECK(applied(none, text, flat) == flat);
  CHECK(applied(usual(), {}, flat) == flat);
  CHECK(applied(usual(), {1}, flat) == flat);
  Dry<> dry(usual());
  for (const TokenId token : text) dry.accept(token);
  dry.forget();
  Row row(flat);
  dry.apply(*row);
  CHECK(row.values() == flat);

  mica::budget::Ledger ledger;
  const mica::alloc::Counting counting(ledger, mica::budget::Account::logits);
  DryOptions off = usual(0.0f);
  off.breakers = {{1}, {2, 3}};
  { const Dry<mica::alloc::Counting> nothing(off, counting); }
  CHECK(ledger.peak() == 0);
  off.multiplier = 1.0f;
  { const Dry<mica::alloc::Counting> some(off, counting); }
  CHECK(ledger.peak() == 100 * 12 + 2 * 12 + 4);
}

TEST_CASE("options out of range and a refusing ledger are errors that say so") {
  const auto with = [](auto member, auto value) {
    DryOptions options = usual();
    options.*member = value;
    return Dry<>(options);
  };
  using mica::Error;
  CHECK_THROWS_WITH_AS(with(&DryOptions::multiplier, -1.0f), "dry-multiplier: found -1, allowed 0 to 1000",
                       Error);
  CHECK_THROWS_WITH_AS(with(&DryOptions::multiplier, NAN), "dry-multiplier: found nan, allowed 0 to 1000",
                       Error);
  CHECK_THROWS_WITH_AS(with(&DryOptions::base, 0.5f), "dry-base: found 0.5, allowed 1 to 1000", Error);
  CHECK_THROWS_WITH_AS(with(&DryOptions::allowed_length, std::int64_t{0}),
                       "dry-allowed-length: found 0, allowed 1 or more", Error);
  CHECK_THROWS_WITH_AS(with(&DryOptions::last_n, std::int64_t{-1}),
                       "dry-penalty-last-n: found -1, allowed 0 (none) to 1048576", Error);
  CHECK_THROWS_WITH_AS(with(&DryOptions::breakers, std::vector<Tokens>{{1}, {}}),
                       "dry-sequence-breaker: found a breaker without a token", Error);
  mica::budget::Ledger ledger(500);
  using Budgeted = mica::alloc::Budgeted<mica::alloc::Aligned>;
  try {
    const Dry<Budgeted> refused(usual(), Budgeted(ledger, mica::budget::Account::logits));
    FAIL("100 tokens do not fit 500 bytes");
  } catch (const Error& error) {
    CHECK(error.code() == mica::ErrorCode::budget);
  }
  CHECK(ledger.used() == 0);
}

}  // namespace dry_test
