// SPDX-License-Identifier: Apache-2.0
//
// Generating with the minimal model, tokenizer, sampler, sampler stage, drafter and constraint.

#include "mica/runtime/generate.hpp"

#include "archetype/arch.hpp"
#include "archetype/constraint.hpp"
#include "archetype/drafter.hpp"
#include "archetype/executor.hpp"
#include "archetype/kernels.hpp"
#include "archetype/kv_element.hpp"
#include "archetype/sampler.hpp"
#include "archetype/sampler_stage.hpp"
#include "archetype/tokenizer.hpp"
#include "archetype/weight_format.hpp"
#include "mica/runtime/batch.hpp"
#include "mica/sample/chain.hpp"
#include "mica/sample/stages.hpp"
#include "model/run_model.hpp"
#include "model/tiny_model.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

namespace mica::test::generate_test {
namespace {

using Least = Transformer<archetype::Arch, WithExecutor<archetype::Executor>, WithKernels<archetype::Kernels>,
                          WithKvElement<archetype::KvElement>, WithWeights<archetype::WeightFormat>>;
static_assert(StepModel<Least>);

using LowestOfThree = sample::Chain<sample::TopK, archetype::SamplerStage>;
static_assert(Sampler<LowestOfThree> && Sampler<archetype::Sampler> && !Sampler<archetype::SamplerStage>);
/// Whether generate() takes a sampler as it is.
template <class S>
constexpr bool generates = requires(Session<Least>& session, const archetype::Tokenizer& tokenizer,
                                    S& sampler, bool (*on_text)(std::string_view)) {
  generate(session, tokenizer, sampler, {}, {}, on_text);
};
static_assert(generates<LowestOfThree> && generates<archetype::Sampler>);
static_assert(!generates<archetype::SamplerStage>);

Recipe bytes_recipe() {
  Recipe recipe;
  recipe.format = format::F16::id;
  recipe.n_vocab = 256;
  return recipe;
}

LowestOfThree lowest_of_three() { return LowestOfThree(sample::TopK(3), archetype::SamplerStage()); }

}  // namespace

TEST_CASE("the minimal model, tokenizer and sampler stage generate a text") {
  const TinyModel tiny(bytes_recipe());
  archetype::Executor executor;
  Least model(tiny.document(), executor, {.n_ctx = 64, .chunk = 8, .logits_rows = 8, .log = {}});
  const archetype::Tokenizer tokenizer;
  Session session(model);
  auto sampler = lowest_of_three();
  std::string text;
  const auto prompt = tokenizer.encode("prompt", {});
  const auto result =
      generate(session, tokenizer, sampler, prompt, {.max_tokens = 20}, [&](std::string_view more) {
        text += more;
        return true;
      });
  CHECK(result.reason == StopReason::length);
  REQUIRE(result.tokens.size() == 20);
  CHECK_FALSE(text.empty());

  Session again(model);
  auto second = lowest_of_three();
  archetype::Drafter drafter;
  const auto drafted = generate(again, tokenizer, second, drafter, prompt, {.max_tokens = 20},
                                [](std::string_view) { return true; });
  CHECK(drafted.tokens == result.tokens);
  CHECK(drafted.drafts.drafted > 0);

  // Each token has the lowest id of the three likeliest.
  auto cache = model.make_cache();
  static_cast<void>(feed(model, cache, prompt, 8));
  for (std::size_t i = 0; i < 20; ++i) {
    const std::vector<std::size_t> last = {i == 0 ? prompt.size() - 1 : 0};
    const auto row = model.logits(last)[0];
    std::vector<text::TokenId> order(256);
    std::iota(order.begin(), order.end(), 0u);
    std::sort(order.begin(), order.end(), [&](auto a, auto b) { return row[a] > row[b]; });
    CHECK(result.tokens[i] == *std::min_element(order.begin(), order.begin() + 3));
    static_cast<void>(feed(model, cache, std::span(result.tokens).subspan(i, 1), 8));
  }
}

TEST_CASE("the minimal constraint is kept, with drafts and without, alone and in a batch") {
  const TinyModel tiny(bytes_recipe());
  archetype::Executor executor;
  Least model(tiny.document(), executor, {.n_ctx = 64, .chunk = 8, .logits_rows = 8, .log = {}});
  const archetype::Tokenizer tokenizer;
  const auto prompt = tokenizer.encode("prompt", {});
  const auto on_text = [](std::string_view) { return true; };
  Session session(model);
  archetype::Sampler sampler;
  archetype::Constraint constraint;
  const auto result = generate(session, tokenizer, sampler, constraint, prompt, {.max_tokens = 20}, on_text);
  REQUIRE(result.tokens.size() == 20);
  CHECK(std::adjacent_find(result.tokens.begin(), result.tokens.end()) == result.tokens.end());

  session.rewind(0);
  archetype::Drafter drafter;
  archetype::Constraint again;
  const auto drafted =
      generate(session, tokenizer, sampler, drafter, again, prompt, {.max_tokens = 20}, on_text);
  CHECK(drafted.tokens == result.tokens);
  CHECK(drafted.drafts.drafted == 0);  // each draft is the token before it

  session.rewind(0);
  archetype::Constraint third;
  Batch<Least, archetype::Tokenizer, archetype::Sampler, NoDrafter, archetype::Constraint> batch(model,
                                                                                                 tokenizer);
  const auto id = batch.add(session, sampler, third, prompt, {.max_tokens = 20}, on_text);
  while (batch.step()) {
  }
  CHECK(batch.remove(id).tokens == result.tokens);
}

TEST_CASE("a chain and a sampler of one's own go into generate") {
  const TinyModel tiny(bytes_recipe());
  archetype::Executor executor;
  Least model(tiny.document(), executor, {.n_ctx = 64, .chunk = 8, .logits_rows = 8, .log = {}});
  const archetype::Tokenizer tokenizer;
  const auto prompt = tokenizer.encode("prompt", {});
  const auto on_text = [](std::string_view) { return true; };
  Session session(model);
  mica::sample::Chain chain(mica::sample::TopK(40), mica::sample::TopP(0.9f), mica::sample::Temperature(0.8f),
                            mica::sample::Dist(7));
  const auto result = mica::generate(session, tokenizer, chain, prompt, {.max_tokens = 20}, on_text);
  CHECK(result.tokens.size() == 20);
  CHECK(chain.stage<sample::Dist>().rng().counter() == 20);

  session.rewind(0);
  archetype::Sampler own;
  const auto likeliest = generate(session, tokenizer, own, prompt, {.max_tokens = 20}, on_text);
  session.rewind(0);
  sample::Chain greedy{sample::Greedy()};
  CHECK(generate(session, tokenizer, greedy, prompt, {.max_tokens = 20}, on_text).tokens == likeliest.tokens);
}

}  // namespace mica::test::generate_test
