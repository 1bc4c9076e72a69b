// SPDX-License-Identifier: Apache-2.0
//
// Generating with the least of everything: model, tokenizer and sampler stage.

#include "mica/runtime/generate.hpp"

#include "archetype/arch.hpp"
#include "archetype/drafter.hpp"
#include "archetype/executor.hpp"
#include "archetype/kernels.hpp"
#include "archetype/kv_element.hpp"
#include "archetype/sampler_stage.hpp"
#include "archetype/tokenizer.hpp"
#include "archetype/weight_format.hpp"
#include "mica/sample/chain.hpp"
#include "mica/sample/top_k.hpp"
#include "model/run_model.hpp"
#include "model/tiny_model.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

namespace mica::test {
namespace {

using Least = Transformer<archetype::Arch, WithExecutor<archetype::Executor>, WithKernels<archetype::Kernels>,
                          WithKvElement<archetype::KvElement>, WithWeights<archetype::WeightFormat>>;
static_assert(StepModel<Least>);

/// What generate() asks of a sampler: the archetype behind a choice of three, over memory of its own.
class Sampler {
 public:
  explicit Sampler(std::size_t n_vocab) : memory_(n_vocab) {}

  std::optional<text::TokenId> sample(std::span<const float> logits) noexcept {
    sample::Candidates candidates(memory_);
    return sample::choose(stages_, candidates, logits);
  }
  void accept(text::TokenId token) noexcept { stages_.accept(token); }

 private:
  std::vector<sample::Candidate> memory_;
  sample::Chain<sample::TopK, archetype::SamplerStage> stages_{sample::TopK(3), archetype::SamplerStage()};
};

}  // namespace

TEST_CASE("the least model, tokenizer and sampler stage generate a text") {
  Recipe recipe;
  recipe.format = format::F16::id;
  recipe.n_vocab = 256;
  const TinyModel tiny(recipe);
  archetype::Executor executor;
  Least model(tiny.document(), executor, {.n_ctx = 64, .chunk = 8, .logits_rows = 8, .log = {}});
  const archetype::Tokenizer tokenizer;
  Session session(model);
  Sampler sampler(256);
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
  Sampler second(256);
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

}  // namespace mica::test
