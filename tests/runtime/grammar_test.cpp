// SPDX-License-Identifier: Apache-2.0
//
// Answers of the bundled model that are texts of a language.

#include "mica/constraint/grammar.hpp"

#include "io/temporary_folder.hpp"
#include "mica/constraint/any.hpp"
#include "mica/runtime/batch.hpp"
#include "mica/runtime/complete.hpp"
#include "mica/runtime/ngram.hpp"

#include <doctest/doctest.h>

#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace mica::test::grammar_test {
namespace {

using constraint::Expressions;
using constraint::ExprId;
using constraint::Grammar;
using constraint::Language;

constexpr std::size_t n_kinds = 3;

/// A person; a list of words; one of some texts that begin alike.
ExprId expression(Expressions& e, std::size_t kind) {
  const ExprId letters = e.repeat(e.set({'a', 'z'}), 1, 12);
  if (kind == 0) {
    return e.cat({e.literal("{\"name\": \""), e.set({'A', 'Z'}), letters, e.literal("\", \"age\": "),
                  e.set({'1', '9'}), e.repeat(e.set({'0', '9'}), 0, 2), e.literal(", \"kind\": \""),
                  e.alt(e.literal("princess"), e.literal("prince")), e.literal("\"}")});
  }
  if (kind == 1)
    return e.cat(e.literal("Words: "),
                 e.repeat(e.cat(letters, e.alt(e.literal(", "), e.literal("; "))), 2, 4));
  return e.alt(std::vector{e.literal(" there was a king and a queen."),
                           e.literal(" there was a king and a bear."),
                           e.literal(" there were three bears.")});
}

Language language(std::size_t kind) {
  Language out{std::make_unique<Expressions>(), std::make_unique<constraint::FixedRules>()};
  out.start = expression(*out.expressions, kind);
  return out;
}

bool accepts(std::size_t kind, std::string_view text) {
  Expressions e;
  return e.accepts(expression(e, kind), text);
}

/// The bundled model and its vocabulary, opened once.
struct Bundled {
  Model model =
      open(MICA_SOURCE "/examples/models/fairy.gguf", {.n_ctx = 256, .chunk = 32, .logits_rows = 9});
  std::shared_ptr<const constraint::TokenTrie> tokens =
      std::make_shared<constraint::TokenTrie>(model.tokenizer());
  std::vector<TokenId> prompt = prompt_ids(model.tokenizer(), "Once upon a time");

  [[nodiscard]] Grammar grammar(std::size_t kind, bool force = true) const {
    return {tokens, language(kind), {.force = force}};
  }
  [[nodiscard]] sample::Standard<> sampler(const sample::SamplerOptions& options) const {
    return sample::Standard<>(options, model.config().n_vocab);
  }
};

Bundled& bundled() {
  static Bundled all;
  return all;
}

/// What a generation gave.
struct Given {
  std::string text;
  GenerateResult result;
};

template <class C, class D = NoDrafter>
Given give(C& constraint, const sample::SamplerOptions& sampling, D drafter = {}) {
  Bundled& b = bundled();
  auto session = b.model.session();
  auto sampler = b.sampler(sampling);
  Given given;
  given.result = generate(session, b.model.tokenizer(), sampler, drafter, constraint, b.prompt,
                          {.max_tokens = 200}, [&](std::string_view text) {
                            given.text += text;
                            return true;
                          });
  return given;
}

const std::vector<sample::SamplerOptions> samplings = {{.temperature = 0},
                                                       {.temperature = 1, .seed = 1},
                                                       {.temperature = 1, .seed = 2},
                                                       {.temperature = 3, .top_k = 0, .min_p = 0, .seed = 3}};

}  // namespace

TEST_CASE("answers are texts of the language, at any temperature, with forced tokens and without") {
  for (std::size_t kind = 0; kind < n_kinds; ++kind) {
    CAPTURE(kind);
    for (const auto& sampling : samplings) {
      for (const bool force : {true, false}) {
        CAPTURE(force);
        Grammar grammar = bundled().grammar(kind, force);
        const Given given = give(grammar, sampling);
        CAPTURE(given.text);
        CHECK(given.result.reason == StopReason::end_of_text);
        CHECK(accepts(kind, given.text));
        CHECK((given.result.forced > 0) == force);
      }
    }
  }
}

TEST_CASE(
    "the greedy answer is the same with forced tokens, where they are the tokens that the model chooses") {
  Grammar forces = bundled().grammar(2), samples = bundled().grammar(2, false);
  const Given forced = give(forces, samplings[0]), sampled = give(samples, samplings[0]);
  CHECK(forced.result.tokens == sampled.result.tokens);
  CHECK(forced.result.tokens.size() == 9);
  CHECK(forced.result.forced == 7);  // all but " was" and " queen"
}

TEST_CASE("answers of a language are the same with drafts") {
  for (std::size_t kind = 0; kind < n_kinds; ++kind) {
    for (const auto& sampling : samplings) {
      Grammar plain = bundled().grammar(kind), drafted = bundled().grammar(kind);
      const Given expected = give(plain, sampling),
                  found = give(drafted, sampling, Ngram({.n = 2, .drafts = 8}));
      CHECK(found.text == expected.text);
      CHECK(found.result.tokens == expected.result.tokens);
    }
  }
}

TEST_CASE("answers of several languages in one batch are those that each has alone") {
  Bundled& b = bundled();
  struct Guest {
    Session<AnyModel> session;
    sample::Standard<> sampler;
    constraint::Any constraint;
    std::string text = {};
    std::size_t id = 0;
  };
  const auto constraint = [&](std::size_t i) {
    return i % 4 < n_kinds ? constraint::Any(b.grammar(i % 4)) : constraint::Any();
  };
  Batch<AnyModel, text::AnyTokenizer, sample::Standard<>, NoDrafter, constraint::Any> batch(
      b.model.transformer(), b.model.tokenizer());
  std::deque<Guest> guests;
  for (std::size_t i = 0; i < 8; ++i) {
    guests.push_back({b.model.session(), b.sampler(samplings[i / 2]), constraint(i)});
    Guest& guest = guests.back();
    guest.id = batch.add(guest.session, guest.sampler, guest.constraint, b.prompt, {.max_tokens = 200},
                         [&guest](std::string_view text) {
                           guest.text += text;
                           return true;
                         });
  }
  while (batch.step()) {
  }
  for (std::size_t i = 0; i < guests.size(); ++i) {
    CAPTURE(i);
    constraint::Any alone = constraint(i);
    const Given expected = give(alone, samplings[i / 2]);
    CHECK(guests[i].text == expected.text);
    CHECK(batch.remove(guests[i].id).tokens == expected.result.tokens);
  }
}

TEST_CASE("a grammar that reaches a limit ends its answer with the reason") {
  Bundled& b = bundled();
  Grammar grammar(b.tokens, language(1), {.limits = {.max_new_states = 3}});
  const Error error = refusal([&] { give(grammar, samplings[1]); });
  CHECK(error.code() == ErrorCode::limit);
  CHECK(mentions(error, "3", "states"));
}

}  // namespace mica::test::grammar_test
