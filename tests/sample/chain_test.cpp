// SPDX-License-Identifier: Apache-2.0

#include "mica/sample/chain.hpp"

#include "mica/sample/penalties.hpp"
#include "mica/sample/stages.hpp"
#include "rows.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace chain_test {

namespace sample = mica::sample;
using sample::Candidate;
using sample::Candidates;
using sample::TokenId;

namespace {

// How often each token is chosen in `draws` draws.
template <class Stage>
std::vector<double> frequencies(Stage stage, const std::vector<float>& logits, std::size_t draws) {
  sample::Chain chain(std::move(stage));
  std::vector<double> out(logits.size(), 0.0);
  for (std::size_t i = 0; i < draws; ++i) {
    const auto token = chain.sample(logits);
    REQUIRE(token);
    out[*token] += 1.0 / static_cast<double>(draws);
  }
  return out;
}

// A stage of a user's own: forbids one token.
struct Without : sample::Memoryless {
  TokenId token;
  explicit Without(TokenId forbidden) : token(forbidden) {}
  void apply(Candidates& candidates) noexcept {
    candidates.keep_if([this](const Candidate& candidate) { return candidate.id != token; });
  }
};
static_assert(mica::SamplerStage<Without>);

// Forgets accept().
struct Deaf {
  void apply(Candidates&) noexcept {}
};
static_assert(!mica::SamplerStage<Deaf>);

}  // namespace

TEST_CASE("tokens are drawn as often as they are probable") {
  const std::vector<float> logits = {std::log(0.5f), std::log(0.1f), -INFINITY, std::log(0.4f)};
  const auto seen = frequencies(sample::Dist(11), logits, 20000);
  // Three standard deviations of 20,000 draws: 0.0106 at p = 0.5.
  CHECK(seen[0] == doctest::Approx(0.5).epsilon(0.022));
  CHECK(seen[1] == doctest::Approx(0.1).epsilon(0.065));
  CHECK(seen[2] == 0.0);
  CHECK(seen[3] == doctest::Approx(0.4).epsilon(0.026));
}

TEST_CASE("temperature bends the distribution by its inverse power") {
  const std::vector<float> logits = {0.0f, std::log(3.0f)};  // 1 : 3, at temperature 0.5 1 : 9
  const auto seen = frequencies(sample::Chain(sample::Temperature(0.5f), sample::Dist(5)), logits, 20000);
  CHECK(seen[1] == doctest::Approx(0.9).epsilon(0.008));
}

TEST_CASE("a chain runs its stages in order") {
  const std::vector<float> logits = {4.0f, 3.0f, 2.0f, 1.0f};
  sample::Chain first(Without(0), sample::TopK(1), sample::Greedy());
  CHECK(first.sample(logits) == std::optional<TokenId>(1));
  sample::Chain nested(sample::Chain(Without(0), Without(1)), sample::Greedy());
  CHECK(nested.sample(logits) == std::optional<TokenId>(2));
}

TEST_CASE("every stage of a chain hears of accepted tokens") {
  sample::Chain chain(sample::Penalties<>({8, 1.0f, 10.0f, 0.0f}), sample::Greedy());
  const std::vector<float> logits = {4.0f, 3.0f, 2.0f};
  std::vector<TokenId> text;
  for (int i = 0; i < 4; ++i) {
    const auto token = chain.sample(logits);
    REQUIRE(token);
    text.push_back(*token);
    chain.accept(*token);
  }
  CHECK(text == std::vector<TokenId>{0, 1, 2, 0});
}

TEST_CASE("a row from which nothing can be chosen is an empty answer") {
  sample::Chain chain(sample::Dist(1));
  const std::vector<float> nothing = {-INFINITY, -INFINITY};
  const std::vector<float> broken = {0.0f, std::numeric_limits<float>::quiet_NaN()};
  CHECK_FALSE(chain.sample(nothing));
  CHECK_FALSE(chain.sample(broken));
  CHECK(chain.stage<sample::Dist>().rng().counter() == 0);
}

TEST_CASE("a draw advances the generator by one, however few candidates there are") {
  sample::Chain chain(sample::Dist(1));
  const std::vector<float> only = {3.0f};
  CHECK(chain.sample(only) == std::optional<TokenId>(0));
  CHECK(chain.stage<sample::Dist>().rng().counter() == 1);
}

}  // namespace chain_test
