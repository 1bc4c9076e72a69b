// SPDX-License-Identifier: Apache-2.0
//
// A model that guesses changes how long an answer takes, never the answer.

#include "mica/runtime/model_drafter.hpp"

#include "runtime/talking_family.hpp"
#include "runtime/talking_model.hpp"

#include <doctest/doctest.h>

namespace mica::test::model_drafter_test {
namespace {

using Model = Transformer<arch::Llama>;

constexpr ModelOptions options{.n_ctx = 300, .chunk = 32, .logits_rows = 9, .log = {}};

template <class D>
GenerateResult answer(Model& model, const sample::SamplerOptions& sampling, D& drafter, std::string& text) {
  static const text::Spm tokenizer = byte_tokenizer();
  Session session(model);
  sample::Standard sampler(sampling, talking_vocabulary);
  return generate(session, tokenizer, sampler, drafter, random_ids(9, 250, 4), {.max_tokens = 60},
                  [&](std::string_view piece) {
                    text += piece;
                    return true;
                  });
}

}  // namespace

TEST_CASE("an answer with a model that guesses is the answer without, and a model guesses itself right") {
  exec::Inline executor;
  const TinyModel dense = talking_dense();
  Recipe other_recipe = talking();
  other_recipe.seed = 9;
  const TinyModel other(other_recipe);
  Model model(dense.document(), executor, options), stranger(other.document(), executor, options);
  for (const sample::SamplerOptions& sampling : samplers()) {
    std::string plain, guessed, guessed_badly;
    NoDrafter none;
    const auto expected = answer(model, sampling, none, plain);
    Model twin(dense.document(), executor, {.n_ctx = 300, .chunk = 7, .logits_rows = 1, .log = {}});
    ModelDrafter itself(twin, talking_vocabulary, 6), bad(stranger, talking_vocabulary, 8);
    const auto good = answer(model, sampling, itself, guessed);
    CHECK(guessed == plain);
    CHECK(good.tokens == expected.tokens);
    CHECK(good.drafts.drafted > 0);
    if (sampling.temperature <= 0 && sampling.repeat_penalty == 1)
      CHECK(good.drafts.accepted == good.drafts.drafted);
    CHECK(answer(model, sampling, bad, guessed_badly).tokens == expected.tokens);
    CHECK(guessed_badly == plain);
  }
}

namespace {

/// Drafts are those of a session that has read the text alone.
template <class AnyKind>
void check_detours(AnyKind& model) {
  ModelDrafter drafter(model, talking_vocabulary, 4);
  const auto ids = random_ids(40, 250, 6), detour = random_ids(25, 250, 7);
  std::vector<TokenId> first(4), again(4), two(2);
  REQUIRE(drafter.draft(std::span(ids).first(39), ids[39], first) == 4);
  REQUIRE(drafter.draft(std::span(detour).first(24), detour[24], again) == 4);
  CHECK(again != first);
  REQUIRE(drafter.draft(std::span(ids).first(39), ids[39], again) == 4);
  CHECK(again == first);
  REQUIRE(drafter.draft(std::span(ids).first(39), ids[39], two) == 2);
  CHECK(std::equal(two.begin(), two.end(), first.begin()));
}

/// A text that goes on with some of the drafts, and then differs, again and again.
template <class AnyKind>
void check_rejections(AnyKind& model) {
  ModelDrafter drafter(model, talking_vocabulary, 4);
  std::vector<TokenId> text = random_ids(20, 250, 6), drafts(4), fresh(4);
  for (std::size_t round = 0; round < 12; ++round) {
    CAPTURE(round);
    const auto before = std::span<const TokenId>(text).first(text.size() - 1);
    REQUIRE(drafter.draft(before, text.back(), drafts) == 4);
    ModelDrafter other(model, talking_vocabulary, 4);
    REQUIRE(other.draft(before, text.back(), fresh) == 4);
    CHECK(drafts == fresh);
    text.insert(text.end(), drafts.begin(), drafts.begin() + static_cast<std::ptrdiff_t>(round % 5));
    text.push_back(static_cast<TokenId>(3 + 7 * round));
  }
}

}  // namespace

TEST_CASE("a draft is what the model would say, after any detour, and after drafts that were rejected") {
  for_each_talking_model(options, [](auto& model) {
    check_detours(model);
    check_rejections(model);
  });
}

TEST_CASE("without room it guesses nothing, and models that cannot go back are refused") {
  exec::Inline executor;
  const TinyModel dense = talking_dense();
  Model brief(dense.document(), executor, {.n_ctx = 20, .chunk = 7, .logits_rows = 1, .log = {}});
  ModelDrafter drafter(brief, talking_vocabulary, 4);
  const auto ids = random_ids(40, 250, 6);
  std::vector<TokenId> drafts(4);
  CHECK(drafter.draft(ids, 1, drafts) == 0);
  CHECK(drafter.draft(std::span(ids).first(18), 1, drafts) == 2);
  const TinyHybrid recurrent{HybridRecipe{}};
  Hybrid hybrid(recurrent.document(), executor, options);
  CHECK_THROWS_AS(ModelDrafter(hybrid, 67, 4), Error);
  CHECK_THROWS_AS(ModelDrafter(brief, talking_vocabulary, 0), Error);
}

}  // namespace mica::test::model_drafter_test
