// SPDX-License-Identifier: Apache-2.0
#include "constraint_choice.hpp"

#include "console.hpp"
#include "mica/alloc/booking.hpp"
#include "mica/constraint/behind.hpp"
#include "mica/constraint/gbnf.hpp"
#include "mica/constraint/grammar.hpp"
#include "mica/constraint/named_token.hpp"
#include "mica/constraint/regex.hpp"
#include "mica/constraint/token_trie.hpp"
#include "mica_tools/schema/schema.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::program {
namespace {

using TokenText = std::function<std::string(std::string_view)>;

/// The flag that chooses the language, as errors name it.
std::string flag_of(const ConstraintChoice& choice) {
  if (!choice.grammar_file.empty()) return "--grammar-file " + escaped(choice.grammar_file);
  if (!choice.grammar.empty()) return "--grammar";
  if (!choice.json_schema.empty()) return "--json-schema";
  return choice.json_object ? "--json-object" : "--regex";
}

/// The language that is chosen. Its errors name the flag.
constraint::Language language_of(const ConstraintChoice& choice, TokenText token_text) {
  constraint::GbnfOptions options;
  options.token_text = std::move(token_text);
  try {
    if (choice.json_object) return schema::parse_schema(R"({"type":"object"})");
    if (!choice.json_schema.empty()) return schema::parse_schema(choice.json_schema);
    if (!choice.regex.empty()) return constraint::regex_language(choice.regex);
    return constraint::parse_gbnf(choice.grammar, options);
  } catch (const Error& error) {
    raise(error.code(), flag_of(choice), ": ", error.message());
  }
}

/// The vocabulary of a model, booked while it is in memory.
struct Vocabulary {
  explicit Vocabulary(Model& model) : tokens(model.tokenizer()) {
    constexpr auto account = budget::Account::tokenizer;
    auto booking = alloc::Booking::make(&model.ledger(), account, tokens.bytes());
    MICA_CHECK(booking, budget, "a grammar or schema: the vocabulary needs ", tokens.bytes(),
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
  flags.text("-j,--json-schema", json_schema, "SCHEMA", "answers are JSON that meets it; a text, or a file");
  flags.toggle("--json-object", json_object, "answers are JSON objects");
  flags.text("--regex", regex, "PATTERN", "answers match it as a whole");
  flags.at_end([this](std::vector<std::string>&) {
    const int chosen =
        !grammar.empty() + !grammar_file.empty() + !json_schema.empty() + json_object + !regex.empty();
    MICA_CHECK(chosen <= 1, usage,
               "--grammar, --grammar-file, --json-schema, --json-object and --regex exclude each other; "
               "choose one.");
  });
}

void ConstraintChoice::prepare() {
  MICA_CHECK(grammar.find_first_of(" \n=") != std::string::npos || !io::exists(grammar), usage,
             "--grammar: '", escaped(grammar, 60), "' is a file; give it with --grammar-file");
  if (!grammar_file.empty()) grammar = read_text(grammar_file);
  const bool is_text = json_schema.starts_with('{') || json_schema == "true" || json_schema == "false";
  if (!json_schema.empty() && !is_text) json_schema = read_text(json_schema);
  if (!is_chosen()) return;
  // Which tokens there are is not known yet.
  const auto any = [](std::string_view) { return constraint::TokenTrie::special_text(0); };
  static_cast<void>(language_of(*this, any));
}

constraint::Any ConstraintChoice::constraint(Model& model, std::string_view thoughts_end) const {
  if (!is_chosen()) return {};
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
  constraint::Language language = language_of(*this, token_text);
  if (!thoughts_end.empty()) constraint::put_behind(language, thoughts_end, token_text(thoughts_end));
  return constraint::Grammar(tokens, std::move(language), options);
}

}  // namespace mica::program
