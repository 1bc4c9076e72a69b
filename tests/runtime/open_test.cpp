// SPDX-License-Identifier: Apache-2.0

#include "mica/runtime/open.hpp"

#include "io/temporary_folder.hpp"
#include "mica/runtime/complete.hpp"
#include "runtime/talking_model.hpp"

#include <doctest/doctest.h>

namespace mica::test {

TEST_CASE("a model in memory opens, completes a text, and books every byte") {
  const TinyModel tiny(talking());
  auto model = open(tiny.bytes(), "tiny.gguf", {.n_ctx = 64, .threads = 2});
  CHECK(model.threads() == 2);
  CHECK(model.config().n_vocab == 258);
  CHECK(model.document().path() == "tiny.gguf");
  const CompleteOptions greedy{.max_tokens = 9, .sampler = {.temperature = 0}};
  const std::string text = complete(model, "abc", greedy);
  CHECK(complete(model, "abc", greedy) == text);
  std::string pieces;
  const GenerateResult result = complete(model, "abc", greedy, [&](std::string_view piece) {
    pieces += piece;
    return true;
  });
  CHECK(pieces == text);
  CHECK(result.timings.prompt.tokens == model.tokenizer().encode("abc").size());
  for (const budget::Account account :
       {budget::Account::weights, budget::Account::activations, budget::Account::logits,
        budget::Account::tokenizer, budget::Account::process}) {
    CAPTURE(budget::name(account));
    CHECK(model.ledger().used(account) > 0);
  }
  CHECK(model.ledger().used(budget::Account::kv) == 0);  // the sessions are gone
  CHECK(model.ledger().peaks()[budget::Account::kv] > 0);
}

TEST_CASE("an empty prompt begins with BOS, and with EOS where there is none") {
  const TinyModel tiny(talking());
  const auto tokenizer = text::make_tokenizer(text::vocabulary_from(tiny.document().metadata()));
  CHECK(prompt_ids(tokenizer, "") == std::vector<TokenId>{0});
  CHECK(prompt_ids(tokenizer, "a").front() == 0);
}

TEST_CASE("a moved model serves its sessions") {
  const TinyModel tiny(talking());
  Model first = open(tiny.bytes(), "tiny.gguf", {.n_ctx = 32});
  auto session = first.session();
  const Model second = std::move(first);
  const std::vector<TokenId> ids = {0, 5, 9};
  CHECK(session.feed(ids) == model::StepStatus::ok);
  CHECK(session.logits().size() == 258);
}

TEST_CASE("a budget that is too small refuses the model and names the account") {
  const TinyModel tiny(talking());
  const Error error =
      refusal([&] { return open(tiny.bytes(), "tiny.gguf", {.n_ctx = 64, .memory_bytes = 6'400'000}); });
  CHECK(error.code() == ErrorCode::budget);
  const Error none = refusal([&] { return open(tiny.bytes(), "tiny.gguf", {.memory_bytes = 1000}); });
  CHECK(none.code() == ErrorCode::budget);
  CHECK(mentions(none, "process", "1000"));
}

TEST_CASE("a family, a policy and a file that are not there are told apart") {
  Recipe recipe = talking();
  recipe.without = {"general.architecture"};
  recipe.edit = [](gguf::Writer& writer) {
    write_byte_vocabulary(writer);
    writer.set("general.architecture", "abacus");
  };
  const TinyModel other(recipe);
  const Error family = refusal([&] { return open(other.bytes(), "other.gguf"); });
  CHECK(family.code() == ErrorCode::unsupported);
  CHECK(mentions(family, "abacus", "llama"));
  const TinyModel tiny(talking());
  const Error policy =
      refusal([&] { return open(tiny.bytes(), "tiny.gguf", {.choice = {.kv = "shelved"}}); });
  CHECK(policy.code() == ErrorCode::usage);
  CHECK(mentions(policy, "shelved", "segmented"));
  CHECK(refusal([] { return open(std::string("nowhere.gguf")); }).code() == ErrorCode::file);
}

TEST_CASE("more pieces than rows of the head are refused") {
  Recipe recipe = talking();
  recipe.n_vocab = 200;
  const TinyModel tiny(recipe);
  const Error error = refusal([&] { return open(tiny.bytes(), "tiny.gguf"); });
  CHECK(error.code() == ErrorCode::file);
  CHECK(mentions(error, "258", "200"));
}

}  // namespace mica::test
