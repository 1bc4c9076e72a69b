// SPDX-License-Identifier: Apache-2.0
//
// Guesses change how long an answer takes, never the answer.

#include "io/temporary_folder.hpp"
#include "mica/runtime/ngram.hpp"
#include "runtime/talking_family.hpp"

#include <doctest/doctest.h>

namespace mica::test::speculation_test {
namespace {

/// Knows the answer, and errs where its pattern says so: the i-th draft of an answer is right when the bit is set.
struct Prophet {
  std::span<const TokenId> answer;
  std::size_t prompt = 0;
  std::uint64_t right = ~std::uint64_t{0};
  std::size_t drafts = 5;
  std::size_t count = 0;

  [[nodiscard]] std::size_t max_drafts() const noexcept { return drafts; }
  [[nodiscard]] std::size_t draft(std::span<const TokenId> before, TokenId, std::span<TokenId> out) noexcept {
    const std::size_t next = before.size() - prompt + 1;
    std::size_t n = 0;
    for (; n < out.size() && next + n < answer.size(); ++n) {
      const bool good = ((right >> (count++ % 64)) & 1) != 0;
      out[n] = good ? answer[next + n] : (answer[next + n] + 1) % talking_vocabulary;
    }
    return n;
  }
};
static_assert(Drafter<Prophet>);

constexpr ModelOptions options{.n_ctx = 300, .chunk = 32, .logits_rows = 8, .log = {}};

const std::vector<TokenId> prompt = random_ids(9, 250, 4);

template <class Model, class D>
std::pair<Answer, GenerateResult> answer(Model& model, const sample::SamplerOptions& sampling, D drafter,
                                         const GenerateOptions& how = {.max_tokens = 60}) {
  static const text::Spm tokenizer = byte_tokenizer();
  Session session(model);
  sample::Standard sampler(sampling, talking_vocabulary);
  Answer answer;
  auto result = generate(session, tokenizer, sampler, drafter, prompt, how, [&](std::string_view text) {
    answer.text += text;
    return true;
  });
  answer.tokens = result.tokens;
  answer.reason = result.reason;
  CHECK(session.tokens().size() == prompt.size() + result.tokens.size() - 1);
  return {answer, result};
}

}  // namespace

TEST_CASE("an answer with drafts, right and wrong ones, is the answer without") {
  for_each_talking_model(options, [](auto& model) {
    for (const sample::SamplerOptions& sampling : samplers()) {
      const auto [plain, counted] = answer(model, sampling, NoDrafter());
      CHECK(counted.drafts.drafted == 0);
      CHECK(plain == answer(model, sampling, Ngram({.n = 2, .drafts = 7})).first);
      for (const std::uint64_t right : {~std::uint64_t{0}, std::uint64_t{0}, 0xF7B5'3D6F'EE9A'577Du}) {
        CAPTURE(right);
        const auto [guessed, result] = answer(model, sampling, Prophet{plain.tokens, prompt.size(), right});
        CHECK(plain == guessed);
        CHECK(result.drafts.drafted > 0);
        CHECK((result.drafts.accepted > 0) == (right != 0));
      }
    }
  });
}

TEST_CASE("an answer with drafts ends where it would have ended, for the same reason") {
  for_each_talking_model(options, [](auto& model) {
    const sample::SamplerOptions sampling = samplers()[2];
    const auto [whole, unused] = answer(model, sampling, NoDrafter());
    const Prophet prophet{whole.tokens, prompt.size()};
    for (const std::size_t length : {1u, 2u, 3u, 6u, 7u, 8u, 13u}) {
      CAPTURE(length);
      const GenerateOptions how{.max_tokens = length};
      CHECK(answer(model, sampling, NoDrafter(), how).first == answer(model, sampling, prophet, how).first);
    }
    for (const std::size_t at : {3u, 9u, 20u}) {
      const GenerateOptions how{.max_tokens = 60, .stop = {whole.text.substr(at, 2)}};
      const auto [stopped, unused_too] = answer(model, sampling, prophet, how);
      CHECK(stopped.reason == StopReason::stop_text);
      CHECK(stopped == answer(model, sampling, NoDrafter(), how).first);
    }
  });
}

TEST_CASE("a full context ends an answer with drafts after the same token") {
  ModelOptions small = options;
  small.n_ctx = 30;
  for_each_talking_model(small, [](auto& model) {
    const sample::SamplerOptions sampling = samplers()[0];
    const auto [plain, unused] = answer(model, sampling, NoDrafter(), {});
    CHECK(plain.reason == StopReason::context_full);
    CHECK(plain == answer(model, sampling, Prophet{plain.tokens, prompt.size()}, {}).first);
  });
}

TEST_CASE("right drafts save steps, one for each that was accepted") {
  ScriptedModel model(prompt.size(), "All of it was known before.", 100, 8);
  const auto [plain, unused] = answer(model, {.temperature = 0}, NoDrafter(), {});
  const std::size_t steps = std::exchange(model.steps, 0);
  const auto [guessed, result] = answer(model, {.temperature = 0}, Prophet{plain.tokens, prompt.size()}, {});
  CHECK(plain == guessed);
  CHECK(result.drafts.accepted > 0);  // how many is a question of time
  CHECK(model.steps + result.drafts.accepted == steps);
}

TEST_CASE("with a least number of drafts no clock decides: so many come in each step, right or wrong") {
  for (const std::uint64_t right : {~std::uint64_t{0}, std::uint64_t{0}}) {
    CAPTURE(right);
    ScriptedModel model(prompt.size(), "Nobody looks at a clock here.", 100, 8);
    const auto [plain, unused] = answer(model, {.temperature = 0}, NoDrafter(), {});
    const std::size_t tokens = plain.tokens.size(), first = 1;  // which comes with the prompt
    const std::size_t steps = std::exchange(model.steps, 0);
    const auto [guessed, result] =
        answer(model, {.temperature = 0}, Prophet{plain.tokens, prompt.size(), right, 3}, {.min_drafts = 3});
    CHECK(plain == guessed);
    // Right ones: four tokens a step, until the answer ends. Wrong ones: one.
    std::size_t drafted = 0, accepted = 0;
    for (std::size_t left = tokens - first, used = 0; left > 0; left -= used) {
      const std::size_t drafts = std::min<std::size_t>(left, 3);
      used = right != 0 ? std::min(left, drafts + 1) : 1;
      drafted += drafts;
      accepted += used - 1;
    }
    CHECK(result.drafts.drafted == drafted);
    CHECK(result.drafts.accepted == accepted);
    CHECK(model.steps + result.drafts.accepted == steps);
  }
}

TEST_CASE("drafts for which there is no memory are given up, and the answer goes on without") {
  ScriptedModel model(prompt.size(), "There is little room.", 100, 8);
  const auto [plain, unused] = answer(model, {.temperature = 0}, NoDrafter(), {});
  model.max_step_tokens = 1;
  model.narrow_from = prompt.size();
  const auto [guessed, result] = answer(model, {.temperature = 0}, Prophet{plain.tokens, prompt.size()}, {});
  CHECK(plain == guessed);
  CHECK(result.drafts.drafted == 0);
}

TEST_CASE(
    "rejected drafts cost a recurrent model no step, and accepted ones none but the rows that run again") {
  const TinyHybrid hybrid = talking_hybrid();
  exec::Inline executor;
  ModelOptions with_drafts = options;
  with_drafts.drafts = true;
  Hybrid model(hybrid.document(), executor, with_drafts);
  const sample::SamplerOptions sampling = samplers()[2];
  const auto steps_of = [&](auto drafter) {
    const std::uint64_t before = model.step_count();
    const auto [given, result] =
        answer(model, sampling, drafter, {.max_tokens = 60, .min_drafts = drafter.max_drafts()});
    CHECK(model.step_count() - before + result.drafts.accepted ==
          60);  // the first token comes with the prompt
    return given;
  };
  const Answer plain = steps_of(NoDrafter());
  for (const std::uint64_t right : {~std::uint64_t{0}, std::uint64_t{0}, 0xF7B5'3D6F'EE9A'577Du}) {
    CAPTURE(right);
    CHECK(steps_of(Prophet{plain.tokens, prompt.size(), right}) == plain);
  }
}

TEST_CASE(
    "drafts on a recurrent model that does not take them back are refused by name, and so are more drafts "
    "than "
    "rows of logits") {
  const TinyHybrid hybrid = talking_hybrid();
  exec::Inline executor;
  Hybrid recurrent(hybrid.document(), executor, options);
  const Error state = refusal([&] { answer(recurrent, {}, Ngram()); });
  CHECK(state.code() == ErrorCode::unsupported);
  CHECK(mentions(state, "qwen35moe", "recurrent", "OpenOptions::drafts"));
  const TinyModel tiny = talking_dense();
  Transformer<arch::Llama> narrow(tiny.document(), executor,
                                  {.n_ctx = 64, .chunk = 8, .logits_rows = 4, .log = {}});
  const Error rows = refusal([&] { answer(narrow, {}, Ngram({.n = 2, .drafts = 4})); });
  CHECK(rows.code() == ErrorCode::usage);
  CHECK(mentions(rows, "4 drafts", "5 rows"));
  CHECK(answer(narrow, {}, Ngram({.n = 2, .drafts = 3}), {.max_tokens = 3}).first.tokens.size() == 3);
}

}  // namespace mica::test::speculation_test
