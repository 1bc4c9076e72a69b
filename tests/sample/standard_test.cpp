// SPDX-License-Identifier: Apache-2.0

#include "mica/sample/standard.hpp"

#include "mica/alloc/budgeted.hpp"
#include "mica/alloc/counting.hpp"
#include "mica/base/error.hpp"
#include "mica/sample/chain.hpp"
#include "rows.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace standard_test {

namespace sample = mica::sample;
using mica::budget::Account;
using sample::SamplerOptions;
using sample::Standard;
using sample::TokenId;

namespace {

constexpr std::size_t vocab = 500;

// The tokens chosen for rows 0 .. n-1, each accepted.
template <class S>
std::vector<TokenId> story(S& sampler, std::uint64_t first_row, std::uint64_t n) {
  std::vector<TokenId> out;
  for (std::uint64_t row = first_row; row < first_row + n; ++row) {
    const auto token = sampler.sample(mica::test::smooth_logits(vocab, row));
    REQUIRE(token);
    sampler.accept(*token);
    out.push_back(*token);
  }
  return out;
}

std::string complaint(const SamplerOptions& options) {
  try {
    const Standard<> sampler(options, vocab);
    return "accepted";
  } catch (const mica::Error& error) {
    CHECK(error.code() == mica::ErrorCode::usage);
    return error.message();
  }
}

SamplerOptions with_penalties() {
  SamplerOptions options;
  options.temperature = 1.5f;
  options.repeat_penalty = 1.2f;
  options.frequency_penalty = 0.3f;
  options.repeat_last_n = 5;
  return options;
}

}  // namespace

TEST_CASE("temperature zero and below is greedy, ties to the lowest id") {
  for (const float temperature : {0.0f, -1.0f}) {
    SamplerOptions options;
    options.temperature = temperature;
    Standard<> sampler(options, 4);
    CHECK(sampler.sample(std::vector<float>{1.0f, 7.0f, 7.0f, 2.0f}) == 1u);
    CHECK(sampler.sample(std::vector<float>{-INFINITY, -5.0f, -5.0f, -6.0f}) == 1u);
    CHECK(sampler.save().counter == 0);
  }
}

TEST_CASE("greedy still hears of penalties") {
  SamplerOptions options;
  options.temperature = 0.0f;
  options.presence_penalty = 2.0f;
  Standard<> sampler(options, 3);
  const std::vector<float> row = {5.0f, 4.0f, 1.0f};
  CHECK(sampler.sample(row) == 0u);
  sampler.accept(0);
  CHECK(sampler.sample(row) == 1u);
}

TEST_CASE("a seed tells the same story every time, and another seed another") {
  SamplerOptions options;
  options.temperature = 2.0f;
  options.seed = 42;
  Standard<> a(options, vocab);
  Standard<> b(options, vocab);
  const auto first = story(a, 0, 50);
  CHECK(first == story(b, 0, 50));
  options.seed = 43;
  Standard<> c(options, vocab);
  CHECK(first != story(c, 0, 50));
}

TEST_CASE("the sampler is the chain of its stages in the documented order") {
  for (const bool penalised : {false, true}) {
    SamplerOptions o = penalised ? with_penalties() : SamplerOptions{};
    o.temperature = 1.5f;
    Standard<> sampler(o, vocab);
    sample::Chain chain(
        sample::Penalties<>({o.repeat_last_n, o.repeat_penalty, o.frequency_penalty, o.presence_penalty}),
        sample::TopK(o.top_k), sample::TopP(o.top_p), sample::MinP(o.min_p),
        sample::Temperature(o.temperature), sample::Dist(o.seed));
    for (std::uint64_t row = 0; row < 200; ++row) {
      const auto logits = mica::test::smooth_logits(vocab, row % 10);
      const auto token = sampler.sample(logits);
      REQUIRE(token);
      REQUIRE(token == chain.sample(logits));
      sampler.accept(*token);
      chain.accept(*token);
    }
  }
}

TEST_CASE("without limits every possible token is drawn as often as it is probable") {
  SamplerOptions options;
  options.temperature = 1.0f;
  options.top_k = 0;
  options.top_p = 1.0f;
  options.min_p = 0.0f;
  Standard<> sampler(options, 3);
  const std::vector<float> logits = {std::log(0.2f), std::log(0.7f), std::log(0.1f)};
  std::vector<double> seen(3, 0.0);
  for (int i = 0; i < 20000; ++i) seen[*sampler.sample(logits)] += 1.0 / 20000.0;
  CHECK(seen[0] == doctest::Approx(0.2).epsilon(0.05));
  CHECK(seen[1] == doctest::Approx(0.7).epsilon(0.02));
  CHECK(seen[2] == doctest::Approx(0.1).epsilon(0.07));
}

TEST_CASE("a sampler restored from its state goes on as if nothing had happened") {
  Standard<> sampler(with_penalties(), vocab);
  story(sampler, 0, 20);
  const sample::SamplerState state = sampler.save();
  CHECK(state.history.size() == 5);
  CHECK(state.counter == 20);
  const auto rest = story(sampler, 20, 30);

  Standard<> other(with_penalties(), vocab);
  story(other, 100, 7);
  other.restore(state);
  CHECK(other.save() == state);
  CHECK(story(other, 20, 30) == rest);
}

TEST_CASE("a state holds the newest tokens, the oldest first, before and after the ring is full") {
  SamplerOptions options = with_penalties();
  options.repeat_last_n = 3;
  Standard<> sampler(options, vocab);
  sampler.accept(1);
  sampler.accept(2);
  CHECK(sampler.save().history == std::vector<TokenId>{1, 2});
  for (const TokenId token : {3u, 4u, 5u, 6u, 7u}) sampler.accept(token);
  CHECK(sampler.save().history == std::vector<TokenId>{5, 6, 7});
  sampler.restore({9, 4, {1, 2, 3, 4}});
  CHECK(sampler.save() == sample::SamplerState{9, 4, {2, 3, 4}});
}

TEST_CASE("a row with NaN, +infinity or nothing possible is an empty answer for every kind of sampler") {
  SamplerOptions greedy;
  greedy.temperature = 0.0f;
  SamplerOptions all;
  all.top_k = 0;
  for (const SamplerOptions& options : {SamplerOptions{}, greedy, all, with_penalties()}) {
    Standard<> sampler(options, 100);
    std::vector<float> row(100, -INFINITY);
    CHECK_FALSE(sampler.sample(row));
    CHECK_FALSE(sampler.sample({}));
    row[70] = 1.0f;
    CHECK(sampler.sample(row) == 70u);
    for (const float bad :
         {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      for (const std::size_t at : {0u, 50u, 99u}) {
        auto broken = row;
        broken[at] = bad;
        CHECK_FALSE(sampler.sample(broken));
      }
    }
  }
}

TEST_CASE("the sampler's memory is booked under logits, and only what its options need") {
  mica::budget::Ledger ledger;
  const mica::alloc::Counting counting(ledger, Account::weights);
  constexpr std::size_t large = 128 * 1024;
  SamplerOptions options;
  options.repeat_last_n = 64;
  { const Standard<mica::alloc::Counting> sampler(options, large, counting); }
  CHECK(ledger.peak() == 40 * sizeof(sample::Candidate) + 2 * 64 * sizeof(TokenId));
  CHECK(ledger.peak(Account::logits) == ledger.peak());
  CHECK(ledger.used() == 0);

  options.presence_penalty = 0.1f;
  { const Standard<mica::alloc::Counting> sampler(options, large, counting); }
  CHECK(ledger.peak() == large * sizeof(sample::Candidate) + 2 * 64 * sizeof(TokenId));
}

TEST_CASE("a sampler that does not fit the budget is an error that says how many bytes") {
  mica::budget::Ledger ledger(1000);
  using Budgeted = mica::alloc::Budgeted<mica::alloc::Aligned>;
  SamplerOptions options;
  options.top_k = 0;
  try {
    const Standard<Budgeted> sampler(options, 1000, Budgeted(ledger, Account::logits));
    FAIL("12,000 bytes do not fit 1,000");
  } catch (const mica::Error& error) {
    CHECK(error.code() == mica::ErrorCode::budget);
    CHECK(error.message().find("12000 bytes") != std::string::npos);
  }
  CHECK(ledger.used() == 0);
}

TEST_CASE("options out of range are refused by name") {
  const auto with = [](auto member, auto value) {
    SamplerOptions options;
    options.*member = value;
    return complaint(options);
  };
  CHECK(with(&SamplerOptions::temperature, std::numeric_limits<float>::quiet_NaN())
            .starts_with("temperature: found nan"));
  CHECK(with(&SamplerOptions::temperature, 1e9f).starts_with("temperature: found 1e+09, allowed"));
  CHECK(with(&SamplerOptions::top_k, std::int64_t{-40}).starts_with("top-k: found -40"));
  CHECK(with(&SamplerOptions::top_p, 2.0f) == "top-p: found 2, allowed 0 to 1");
  CHECK(with(&SamplerOptions::min_p, 2.0f) == "min-p: found 2, allowed 0 to 1");
  CHECK(with(&SamplerOptions::repeat_penalty, -1.0f).starts_with("repeat-penalty: found -1"));
  CHECK(with(&SamplerOptions::repeat_last_n, std::int64_t{-1}).starts_with("repeat-last-n: found -1"));
  CHECK(with(&SamplerOptions::frequency_penalty, INFINITY).starts_with("frequency-penalty: found inf"));
  CHECK(with(&SamplerOptions::presence_penalty, -INFINITY).starts_with("presence-penalty: found -inf"));
  CHECK(with(&SamplerOptions::top_k, std::int64_t{0}) == "accepted");
}

}  // namespace standard_test
