// SPDX-License-Identifier: Apache-2.0
//
// A context that shifts: what stays is run again at its new positions, so the session is one that never had the rest.

#include "mica/arch/llama.hpp"
#include "mica/exec/team.hpp"
#include "mica/kv/sinks_and_window.hpp"
#include "mica/runtime/batch.hpp"
#include "mica/runtime/generate.hpp"
#include "mica/sample/standard.hpp"
#include "model/run_model.hpp"
#include "model/tiny_hybrid.hpp"
#include "model/tiny_model.hpp"
#include "runtime/scripted_model.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace mica::test::shift_test {
namespace {

/// Logits after the tokens of a session, in a session that begins with them.
template <class Model>
void check_like_fresh(Model& model, Session<Model>& session, std::span<const TokenId> next) {
  std::vector<TokenId> expected(session.tokens().begin(), session.tokens().end());
  expected.insert(expected.end(), next.begin(), next.end());
  REQUIRE(session.feed(next) == model::StepStatus::ok);
  const auto row = session.logits();
  const std::vector<float> logits(row.begin(), row.end());
  Session fresh(model);
  REQUIRE(fresh.feed(expected) == model::StepStatus::ok);
  CHECK(same_bits(logits, fresh.logits()));
}

template <class Model>
void check_shifts(Model& model, std::size_t n_vocab) {
  const auto ids = random_ids(150, n_vocab), next = random_ids(5, n_vocab, 9);
  for (const std::size_t keep : {0u, 1u, 16u, 40u, 149u}) {
    CAPTURE(keep);
    Session session(model);
    REQUIRE(session.feed(ids) == model::StepStatus::ok);
    const std::size_t gone = (150 - keep + 1) / 2;
    CHECK(session.shift(keep) == gone);
    std::vector<TokenId> expected(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(keep));
    expected.insert(expected.end(), ids.begin() + static_cast<std::ptrdiff_t>(keep + gone), ids.end());
    CHECK(std::equal(expected.begin(), expected.end(), session.tokens().begin(), session.tokens().end()));
    CHECK(session.cached() <= keep);
    check_like_fresh(model, session, next);
  }
  Session session(model);
  REQUIRE(session.feed(ids) == model::StepStatus::ok);
  CHECK(session.shift(150) == 0);
  CHECK(session.tokens().size() == 150);
}

/// Guesses badly, and counts how often its session has lost what it had.
template <class Model>
struct Wrong {
  const Session<Model>* session;
  std::size_t drafted = 0;
  std::size_t lost = 0;

  [[nodiscard]] std::size_t max_drafts() const noexcept { return 8; }
  [[nodiscard]] std::size_t draft(std::span<const TokenId>, TokenId, std::span<TokenId> drafts) noexcept {
    lost += session->cached() == session->tokens().size() ? 0 : 1;
    drafted += drafts.size();
    for (std::size_t i = 0; i < drafts.size(); ++i) drafts[i] = static_cast<TokenId>(7 + i);
    return drafts.size();
  }
};

const text::Spm& bytes() {
  static const text::Spm tokenizer = byte_tokenizer();
  return tokenizer;
}

/// What a scripted model says in a context that shifts: its words depend on how many tokens stand before them.
std::string expected_text(std::string_view script, std::size_t prompt, std::size_t n_ctx, std::size_t keep,
                          std::size_t length) {
  std::string text;
  for (std::size_t n = prompt; text.size() < length; ++n) {
    text += script[n - prompt];
    if (n == n_ctx) n -= (n - keep + 1) / 2;
  }
  return text;
}

}  // namespace

TEST_CASE("a session that has shifted is one that never had what went") {
  const TinyModel tiny{Recipe{}};
  exec::Inline executor;
  Transformer<arch::Llama> model(tiny.document(), executor,
                                 {.n_ctx = 200, .chunk = 64, .logits_rows = 1, .log = {}});
  check_shifts(model, 67);
}

TEST_CASE("so is one with a recurrent state") {
  const TinyHybrid tiny{HybridRecipe{}};
  exec::Inline executor;
  Hybrid model(tiny.document(), executor, {.n_ctx = 200, .chunk = 64, .logits_rows = 1, .log = {}});
  check_shifts(model, HybridRecipe{}.n_vocab);
}

TEST_CASE("drafts never make a model forget what they would have to give back") {
  const TinyModel tiny({.n_vocab = 258});
  exec::Inline executor;
  using Model = Transformer<arch::Llama, WithEviction<kv::SinksAndWindow>>;
  Model model(tiny.document(), executor, {.n_ctx = 600, .chunk = 64, .logits_rows = 9, .log = {}},
              {.eviction = kv::SinksAndWindow(192)});
  const auto prompt = random_ids(150, 258);
  GenerateOptions options{.max_tokens = 300, .stop_at_end = false};
  const auto silent = [](std::string_view) { return true; };
  Session alone(model), session(model);
  sample::Standard sampler({.temperature = 0}, 258), again({.temperature = 0}, 258);
  const auto expected = generate(alone, bytes(), sampler, prompt, options, silent).tokens;
  Wrong<Model> drafter{&session};
  CHECK(generate(session, bytes(), again, drafter, prompt, options, silent).tokens == expected);
  CHECK(drafter.drafted > 0);
  CHECK(drafter.lost == 0);
}

TEST_CASE("an answer goes on over the end of the context, again and again") {
  const std::string script = "abcdefghijklmnopqrstuvwxyz";
  for (const std::size_t keep : {0u, 1u, 3u, 9u}) {
    CAPTURE(keep);
    ScriptedModel model(3, script, 12);
    Session session(model);
    sample::Standard sampler({.temperature = 0}, model.config().n_vocab);
    const std::vector<TokenId> prompt = {scripted_bos, first_byte + 'x', first_byte + 'y'};
    std::string text;
    GenerateOptions options{.max_tokens = 60};
    options.on_full = OnFull::shift;
    options.keep_first = keep;
    const auto result = generate(session, bytes(), sampler, prompt, options, [&](std::string_view piece) {
      text += piece;
      return true;
    });
    CHECK(result.reason == StopReason::length);
    CHECK(text == expected_text(script, 3, 12, keep, 60));
    CHECK(result.shifted == 3 + 60 - 1 - session.tokens().size());
    CHECK(session.tokens().size() <= 12);
  }
}

TEST_CASE("a prompt longer than the context is read to its end, and a context that is all kept is full") {
  ScriptedModel model(20, "abc", 16);
  Session session(model);
  sample::Standard sampler({.temperature = 0}, model.config().n_vocab);
  std::vector<TokenId> prompt = {scripted_bos};
  for (TokenId i = 0; i < 40; ++i) prompt.push_back(first_byte + 'a' + i % 26);
  GenerateOptions options{.max_tokens = 1};
  options.on_full = OnFull::shift;
  options.keep_first = 4;
  const auto silent = [](std::string_view) { return true; };
  const auto result = generate(session, bytes(), sampler, prompt, options, silent);
  CHECK(result.reason == StopReason::length);
  CHECK(session.tokens().size() == prompt.size() - result.shifted);
  CHECK(std::equal(prompt.begin(), prompt.begin() + 4, session.tokens().begin()));
  CHECK(session.tokens().back() == prompt.back());
  Session other(model);
  options.keep_first = 16;
  CHECK(generate(other, bytes(), sampler, prompt, options, silent).reason == StopReason::context_full);
}

TEST_CASE("answers of a batch shift as they do alone") {
  const TinyModel tiny({.n_vocab = 258});
  exec::Inline executor;
  using Model = Transformer<arch::Llama>;
  Model model(tiny.document(), executor, {.n_ctx = 40, .chunk = 32, .logits_rows = 3, .log = {}});
  GenerateOptions options{.max_tokens = 70, .stop_at_end = false};
  options.on_full = OnFull::shift;
  options.keep_first = 2;
  const auto silent = [](std::string_view) { return true; };
  std::vector<std::vector<TokenId>> alone, prompts;
  std::vector<std::unique_ptr<Session<Model>>> sessions;
  std::vector<std::unique_ptr<sample::Standard<>>> samplers;
  Batch<Model, text::Spm> batch(model, bytes());
  for (const std::size_t n : {5u, 30u, 60u}) {
    prompts.push_back(random_ids(n, 258, n));
    Session session(model);
    sample::Standard sampler({.temperature = 0}, 258);
    alone.push_back(generate(session, bytes(), sampler, prompts.back(), options, silent).tokens);
    sessions.push_back(std::make_unique<Session<Model>>(model));
    samplers.push_back(std::make_unique<sample::Standard<>>(sample::SamplerOptions{.temperature = 0}, 258));
    static_cast<void>(batch.add(*sessions.back(), *samplers.back(), prompts.back(), options, silent));
  }
  while (batch.step()) {
  }
  CHECK(batch.remove(0).tokens == alone[0]);
  CHECK(batch.remove(1).tokens == alone[1]);
}

}  // namespace mica::test::shift_test
