// SPDX-License-Identifier: Apache-2.0
#include "constraint_choice.hpp"

#include "console.hpp"
#include "mica/alloc/booking.hpp"
#include "mica/alloc/budgeted.hpp"
#include "mica/alloc/huge.hpp"
#include "mica/constraint/gbnf.hpp"
#include "mica/constraint/grammar.hpp"
#include "mica/constraint/named_token.hpp"
#include "mica/constraint/token_trie.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::program {
namespace {

using TokenText = std::function<std::string(std::string_view)>;

/// The language of a grammar. Its errors name the flag.
constraint::Language language_of(const ConstraintChoice& choice, TokenText token_text) {
  constraint::GbnfOptions options;
  options.token_text = std::move(token_text);
  try {
    return constraint::parse_gbnf(choice.grammar, options);
  } catch (const Error& error) {
    const std::string file = choice.grammar_file.empty() ? "" : join("-file ", escaped(choice.grammar_file));
    raise(error.code(), "--grammar", file, ": ", error.message());
  }
}

/// The vocabulary of a model, booked while it is in memory.
struct Vocabulary {
  explicit Vocabulary(Model& model) : tokens(model.tokenizer()) {
    constexpr auto account = budget::Account::tokenizer;
    auto booking =
        alloc::Booking::make(alloc::Budgeted<alloc::Huge>(model.ledger(), account), account, tokens.bytes());
    MICA_CHECK(booking, budget, "--grammar: the vocabulary needs ", tokens.bytes(),
               " bytes for it; give --memory more");
    booked = *std::move(booking);
  }

  constraint::TokenTrie tokens;
  alloc::Booking booked;
};

}  // namespace

void ConstraintChoice::add_to(Flags& flags) {
  flags.text("--grammar", grammar, "GBNF", "answers are texts of this grammar, in the format of llama.cpp");
  flags.text("--grammar-file", grammar_file, "FILE", "the same from a file");
  flags.at_end([this](std::vector<std::string>&) {
    if (!grammar_file.empty()) {
      MICA_CHECK(grammar.empty(), usage, "--grammar and --grammar-file exclude each other; choose one.");
      grammar = read_text(grammar_file);
    }
    // A mistake is found before a model is loaded; which tokens there are is not known yet.
    if (!grammar.empty()) {
      const auto any = [](std::string_view) { return constraint::TokenTrie::special_text(0); };
      static_cast<void>(language_of(*this, any));
    }
  });
}

constraint::Any ConstraintChoice::constraint(Model& model) const {
  if (grammar.empty()) return {};
  const auto vocabulary = std::make_shared<Vocabulary>(model);
  const std::shared_ptr<const constraint::TokenTrie> tokens(vocabulary, &vocabulary->tokens);
  const auto token_text = [&](std::string_view name) {
    return constraint::named_token(*tokens, name, [&](std::string_view text) {
      return model.tokenizer().encode(text, {.add_special = false, .parse_special = true});
    });
  };
  constraint::GrammarOptions options;
  options.ledger = &model.ledger();
  options.limits.max_bytes = std::min<std::uint64_t>(options.limits.max_bytes, model.ledger().left() / 4);
  return constraint::Grammar(tokens, language_of(*this, token_text), options);
}

}  // namespace mica::program
