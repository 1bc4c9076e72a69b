// SPDX-License-Identifier: Apache-2.0

#include "mica/runtime/generate.hpp"

#include "mica/sample/standard.hpp"
#include "runtime/scripted_model.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <cmath>

namespace mica::test::generate_test {
namespace {

/// What a generation gave: the pieces as they came, and the result.
struct Given {
  std::vector<std::string> pieces;
  GenerateResult result;

  [[nodiscard]] std::string text() const {
    std::string all;
    for (const std::string& piece : pieces) all += piece;
    return all;
  }
};

Given give(ScriptedModel& model, const GenerateOptions& options, std::size_t wanted_pieces = 1000) {
  static const text::Spm tokenizer = byte_tokenizer();
  Session session(model);
  sample::Standard sampler({.temperature = 0}, model.config().n_vocab);
  const std::vector<TokenId> prompt = {scripted_bos, first_byte + 'x', first_byte + 'y'};
  Given given;
  given.result = generate(session, tokenizer, sampler, prompt, options, [&](std::string_view piece) {
    given.pieces.emplace_back(piece);
    return given.pieces.size() < wanted_pieces;
  });
  return given;
}

}  // namespace

TEST_CASE("generation goes on to the token that ends the text") {
  ScriptedModel model(3, "Hello.");
  const Given given = give(model, {});
  CHECK(given.text() == "Hello.");
  CHECK(given.result.reason == StopReason::end_of_text);
  CHECK(given.result.tokens.back() == scripted_eos);
  CHECK(given.result.timings.prompt.tokens == 3);
  CHECK(given.result.timings.predicted.tokens == 7);
}

TEST_CASE("a length ends it, and nothing is computed for a token that nobody wants") {
  ScriptedModel model(3, "Hello.");
  const Given given = give(model, {.max_tokens = 3});
  CHECK(given.text() == "Hel");
  CHECK(given.result.reason == StopReason::length);
  CHECK(model.steps == 1 + 2);
}

TEST_CASE("pieces are whole characters though tokens are bytes") {
  ScriptedModel model(3, "a\xC3\xA9\xF0\x9F\x98\x80!");
  const Given given = give(model, {});
  CHECK(given.pieces == std::vector<std::string>{"a", "\xC3\xA9", "\xF0\x9F\x98\x80", "!"});
}

TEST_CASE("half a character at the end comes out as it is") {
  ScriptedModel model(3, "a\xF0\x9F");
  CHECK(give(model, {}).text() == "a\xF0\x9F");
}

TEST_CASE("a stop text ends the answer and is not in it, in whatever pieces it comes") {
  ScriptedModel model(3, "one\nUser: two");
  const Given given = give(model, {.stop = {"\nUser:"}});
  CHECK(given.text() == "one");
  CHECK(given.result.reason == StopReason::stop_text);
}

TEST_CASE("what only looked like a stop text comes out") {
  ScriptedModel model(3, "one\nUse it\nUs");
  CHECK(give(model, {.stop = {"\nUser:", ""}}).text() == "one\nUse it\nUs");
}

TEST_CASE("of two stop texts the one that is complete first counts") {
  ScriptedModel model(3, "abcdef");
  const Given given = give(model, {.stop = {"cdef", "bcd"}});
  CHECK(given.text() == "a");
  CHECK(given.result.stop == 1);
}

TEST_CASE("an end token may be passed over") {
  ScriptedModel model(3, "Hi");
  const Given given = give(model, {.max_tokens = 5, .stop_at_end = false});
  CHECK(given.text() == "Hi");
  CHECK(given.result.tokens.size() == 5);
  ScriptedModel again(3, "Hi");
  CHECK(give(again, {.max_tokens = 3, .stop_at_end = false, .show_special = true}).text() == "Hi</s>");
}

TEST_CASE("the reader may stop, and so may a flag") {
  ScriptedModel model(3, "Hello.");
  CHECK(give(model, {}, 2).result.reason == StopReason::cancelled);
  ScriptedModel other(3, "Hello.");
  const std::atomic<bool> cancel{true};
  const Given given = give(other, {.cancel = &cancel});
  CHECK(given.result.reason == StopReason::cancelled);
  CHECK(given.pieces.empty());
}

TEST_CASE("a full context and a refused step are reasons, not errors") {
  ScriptedModel small(3, "Hello.", 5);
  const Given full = give(small, {});
  CHECK(full.text() == "Hel");
  CHECK(full.result.reason == StopReason::context_full);
  ScriptedModel poor(3, "Hello.");
  poor.failing_from = 4;
  CHECK(give(poor, {}).result.reason == StopReason::no_memory);
  ScriptedModel torn(3, "Hello.");
  torn.failing_from = 0;
  torn.failure = model::StepStatus::read_failed;
  CHECK(give(torn, {}).result.reason == StopReason::read_failed);
}

TEST_CASE("weights that cannot be read any more end the answer with what there is, layers and head alike") {
  for (const bool head : {false, true}) {
    ScriptedModel model(3, "Hello.");
    model.failure = model::StepStatus::read_failed;
    (head ? model.headless_from : model.failing_from) = 5;
    const Given given = give(model, {});
    CHECK(given.text() == "Hel");
    CHECK(given.result.reason == StopReason::read_failed);
    CHECK(given.result.unfed == (head ? 0 : 1));  // the session took the last token, or not
  }
}

TEST_CASE("each token comes with its probability and the most likely ones, before its text") {
  ScriptedModel model(3, "Hi");
  const text::Spm tokenizer = byte_tokenizer();
  Session session(model);
  sample::Standard sampler({.temperature = 0, .repeat_penalty = 2.0f}, model.config().n_vocab);
  const std::vector<TokenId> prompt = {scripted_bos, first_byte + 'x', first_byte + 'y'};
  // One logit is 1 and 257 are 0, so the sum is e + 257. Penalties do not count.
  const double sum = std::exp(1.0) + 257;
  std::vector<TokenId> seen;
  std::size_t pieces = 0;
  const ScoredToken* storage = nullptr;
  GenerateOptions options{.top_tokens = 3};
  options.on_token = [&](const TokenScores& scores) {
    CHECK(pieces == seen.size());
    seen.push_back(scores.token.id);
    CHECK(scores.token.log_probability == doctest::Approx(1 - std::log(sum)));
    REQUIRE(scores.top.size() == 3);
    CHECK(scores.top[0].id == scores.token.id);
    CHECK(scores.top[0].log_probability == scores.token.log_probability);
    CHECK(scores.top[1].id == (scores.token.id == 0 ? 1 : 0));  // of equal ones the lower id is better
    CHECK(scores.top[1].log_probability == doctest::Approx(-std::log(sum)));
    CHECK(scores.top[2].log_probability == scores.top[1].log_probability);
    if (storage == nullptr) storage = scores.top.data();
    CHECK(scores.top.data() == storage);  // allocated once
  };
  const GenerateResult result = generate(session, tokenizer, sampler, prompt, options, [&](std::string_view) {
    ++pieces;
    return true;
  });
  CHECK(seen == result.tokens);
  CHECK(seen.back() == scripted_eos);
}

TEST_CASE(
    "probabilities come without alternatives where none are wanted, and never more than there are tokens") {
  for (const std::size_t top : {0u, 1000u}) {
    ScriptedModel model(3, "H");
    std::size_t found = 1;
    give(model,
         {.on_token = [&](const TokenScores& scores) { found = scores.top.size(); }, .top_tokens = top});
    CHECK(found == (top == 0 ? 0 : 258));
  }
}

TEST_CASE("logits that are not finite are an error that names the layer") {
  ScriptedModel model(3, "Hello.");
  model.non_finite_from = 5;
  try {
    static_cast<void>(give(model, {}));
    FAIL("nothing was raised");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::failed);
    CHECK(error.message().find("layer 2") != std::string::npos);
    CHECK(error.message().find("after token 4") != std::string::npos);
  }
}

}  // namespace mica::test::generate_test
