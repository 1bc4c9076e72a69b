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

// Each option on, with an effect on rows of smooth_logits().
SamplerOptions with_everything() {
  SamplerOptions o = with_penalties();
  o.seed = 21;
  o.dry = {.multiplier = 0.7f, .allowed_length = 1, .last_n = 30, .breakers = {{7}, {3, 4}}};
  o.top_n_sigma = 1.2f;
  o.top_k = 60;
  o.typical = 0.9f;
  o.top_p = 0.93f;
  o.min_p = 0.02f;
  o.xtc_probability = 0.5f;
  o.xtc_threshold = 0.05f;
  o.dynatemp_range = 0.5f;
  o.logit_bias = {{5, 4.0f}, {6, -INFINITY}};
  return o;
}

// Whether both choose the same tokens, each accepted, for rows of which some come again.
template <class A, class B>
bool same_story(A& a, B& b, std::uint64_t n) {
  for (std::uint64_t row = 0; row < n; ++row) {
    const auto logits = mica::test::smooth_logits(vocab, row % 10);
    const auto token = a.sample(logits);
    if (!token || token != b.sample(logits)) return false;
    a.accept(*token);
    b.accept(*token);
  }
  return true;
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

TEST_CASE("with every stage the sampler is the chain of them, in the order of llama.cpp") {
  const SamplerOptions o = with_everything();
  Standard<> sampler(o, vocab);
  sample::Chain chain(
      sample::LogitBias(o.logit_bias),
      sample::Penalties<>({o.repeat_last_n, o.repeat_penalty, o.frequency_penalty, o.presence_penalty}),
      sample::Dry<>(o.dry), sample::TopNSigma(o.top_n_sigma), sample::TopK(o.top_k),
      sample::Typical(o.typical), sample::TopP(o.top_p), sample::MinP(o.min_p),
      sample::Xtc(o.xtc_probability, o.xtc_threshold, mica::CounterRng(~o.seed)),
      sample::Temperature(o.temperature, o.dynatemp_range, o.dynatemp_exponent), sample::Dist(o.seed));
  CHECK(same_story(sampler, chain, 300));
}

TEST_CASE("mirostat takes the place of the stages that narrow") {
  for (const int version : {1, 2}) {
    SamplerOptions o = with_everything();
    o.mirostat = version;
    o.mirostat_tau = 3.0f;
    Standard<> sampler(o, vocab);
    sample::Chain chain(
        sample::LogitBias(o.logit_bias),
        sample::Penalties<>({o.repeat_last_n, o.repeat_penalty, o.frequency_penalty, o.presence_penalty}),
        sample::Dry<>(o.dry), sample::Temperature(o.temperature, o.dynatemp_range, o.dynatemp_exponent),
        sample::Mirostat(version, o.mirostat_tau, o.mirostat_eta, mica::CounterRng(o.seed)));
    CHECK(same_story(sampler, chain, 300));
  }
}

TEST_CASE("an order of stages is followed, and stages that are not in it are off") {
  SamplerOptions o = with_everything();
  o.order = {sample::Stage::temperature, sample::Stage::min_p, sample::Stage::top_k};
  Standard<> sampler(o, vocab);
  sample::Chain chain(sample::LogitBias(o.logit_bias),
                      sample::Temperature(o.temperature, o.dynatemp_range, o.dynatemp_exponent),
                      sample::MinP(o.min_p), sample::TopK(o.top_k), sample::Dist(o.seed));
  CHECK(same_story(sampler, chain, 200));
  o.order = {sample::Stage::top_k, sample::Stage::top_p, sample::Stage::top_k};
  CHECK(complaint(o).starts_with("samplers: stage 3 of 9 is there twice"));
  o.order = {static_cast<sample::Stage>(200)};
  CHECK(complaint(o).starts_with("samplers: stage 200 of 9"));
}

TEST_CASE("stages whose options are off cost no memory and change no bit") {
  SamplerOptions off;
  off.dry.base = 3.0f;
  off.dry.breakers = {{1}, {2, 3}};
  off.dry.last_n = 1000;
  off.top_n_sigma = 0.0f;
  off.xtc_threshold = 0.0f;
  off.dynatemp_exponent = 2.0f;
  off.mirostat_tau = 1.0f;
  for (const SamplerOptions& plain : {SamplerOptions{}, with_penalties()}) {
    SamplerOptions o = plain;
    o.dry = off.dry, o.top_n_sigma = off.top_n_sigma, o.xtc_threshold = off.xtc_threshold;
    o.dynatemp_exponent = off.dynatemp_exponent, o.mirostat_tau = off.mirostat_tau;
    Standard<> a(plain, vocab), b(o, vocab);
    CHECK(same_story(a, b, 200));
    CHECK(a.save() == b.save());
    mica::budget::Ledger ledger;
    const mica::alloc::Counting counting(ledger, Account::weights);
    { const Standard<mica::alloc::Counting> sampler(plain, 5000, counting); }
    const auto before = ledger.peak();
    { const Standard<mica::alloc::Counting> sampler(o, 5000, counting); }
    CHECK(ledger.peak() == before);
  }
}

TEST_CASE("greedy hears of biases and of dry, and of no stage that could drop the best") {
  SamplerOptions o = with_everything();
  o.temperature = 0.0f;
  o.xtc_probability = 1.0f, o.xtc_threshold = 0.0f, o.typical = 0.1f, o.mirostat = 2;
  o.repeat_penalty = 1.0f, o.frequency_penalty = 0.0f;
  Standard<> sampler(o, vocab);
  sample::Chain chain(sample::LogitBias(o.logit_bias), sample::Dry<>(o.dry), sample::Greedy());
  CHECK(same_story(sampler, chain, 200));
  Standard<> biased({.temperature = 0, .logit_bias = {{2, 9.0f}}}, 4);
  CHECK(biased.sample(std::vector<float>{1.0f, 7.0f, 0.0f, 2.0f}) == 2u);
}

TEST_CASE("where every possible token is forbidden there is an empty answer, and the next row is answered") {
  for (const float temperature : {0.0f, 0.8f}) {
    for (const int mirostat : {0, 1, 2}) {
      SamplerOptions o = with_everything();
      o.temperature = temperature;
      o.mirostat = mirostat;
      o.logit_bias = {{1, -INFINITY}, {2, -INFINITY}};
      Standard<> sampler(o, 4);
      CHECK_FALSE(sampler.sample(std::vector<float>{-INFINITY, 1.0f, 2.0f, -INFINITY}));
      CHECK(sampler.sample(std::vector<float>{-INFINITY, 1.0f, 2.0f, 0.5f}) == 3u);
      sample::Chain chain(sample::LogitBias(o.logit_bias), sample::Typical(0.5f), sample::Dist(1));
      CHECK_FALSE(chain.sample(std::vector<float>{-INFINITY, 1.0f, 2.0f, -INFINITY}));
    }
  }
}

TEST_CASE("a sampler with every stage, restored from its state, goes on as if nothing had happened") {
  for (const int mirostat : {0, 1, 2}) {
    SamplerOptions o = with_everything();
    o.mirostat = mirostat;
    Standard<> sampler(o, vocab);
    story(sampler, 0, 40);
    const sample::SamplerState state = sampler.save();
    CHECK(state.history.size() == 30);  // the longer one of both
    CHECK((state.mu != 0.0f) == (mirostat != 0));
    const auto rest = story(sampler, 40, 40);
    Standard<> other(o, vocab);
    story(other, 100, 7);
    other.restore(state);
    CHECK(other.save() == state);
    CHECK(story(other, 40, 40) == rest);
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
  CHECK(with(&SamplerOptions::temperature, 1e-9f) == "accepted");
  CHECK(with(&SamplerOptions::temperature, 10'001.0f).ends_with("10000, or 0 for always the best token"));
  CHECK(with(&SamplerOptions::temperature, 1e9f).starts_with("temperature: found 1e+09, allowed"));
  CHECK(with(&SamplerOptions::top_k, std::int64_t{-40}).starts_with("top-k: found -40"));
  CHECK(with(&SamplerOptions::top_p, 2.0f) == "top-p: found 2, allowed 0 to 1");
  CHECK(with(&SamplerOptions::min_p, 2.0f) == "min-p: found 2, allowed 0 to 1");
  CHECK(with(&SamplerOptions::repeat_penalty, -1.0f).starts_with("repeat-penalty: found -1"));
  CHECK(with(&SamplerOptions::repeat_last_n, std::int64_t{-1}).starts_with("repeat-last-n: found -1"));
  CHECK(with(&SamplerOptions::frequency_penalty, INFINITY).starts_with("frequency-penalty: found inf"));
  CHECK(with(&SamplerOptions::presence_penalty, -INFINITY).starts_with("presence-penalty: found -inf"));
  CHECK(with(&SamplerOptions::top_k, std::int64_t{0}) == "accepted");
  CHECK(with(&SamplerOptions::typical, 2.0f) == "typical: found 2, allowed 0 to 1");
  CHECK(with(&SamplerOptions::top_n_sigma, -5.0f) == "top-n-sigma: found -5, allowed -1 to 1000");
  CHECK(with(&SamplerOptions::xtc_probability, 2.0f) == "xtc-probability: found 2, allowed 0 to 1");
  CHECK(with(&SamplerOptions::mirostat, 3) == "mirostat: found 3, allowed 0 to 2");
  CHECK(with(&SamplerOptions::dynatemp_range, -1.0f) == "dynatemp-range: found -1, allowed 0 to 10000");
  CHECK(with(&SamplerOptions::dry, sample::DryOptions{.last_n = -1}) == "accepted");  // it is off
  CHECK(with(&SamplerOptions::dry, sample::DryOptions{.multiplier = 1.0f, .last_n = -1})
            .starts_with("dry-penalty-last-n: found -1"));
}

}  // namespace standard_test
