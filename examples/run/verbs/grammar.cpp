// SPDX-License-Identifier: Apache-2.0
//
// What a schema or a grammar enforces, and where a text leaves it. No model is needed.
#include "choice.hpp"
#include "console.hpp"
#include "input.hpp"
#include "json_text.hpp"
#include "mica/base/assert.hpp"
#include "mica/constraint/gbnf.hpp"
#include "mica/constraint/next_texts.hpp"
#include "mica/constraint/regex.hpp"
#include "mica/constraint/token_trie.hpp"
#include "mica_tools/schema/explain.hpp"
#include "verbs.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace mica::program {
namespace {

class GrammarVerb final : public Verb {
 public:
  GrammarVerb()
      : Verb({"grammar", "whether a text meets a schema or grammar, and where it leaves it",
              "mica grammar check schema.json answer.json"}) {}
  int run() override;

  std::vector<std::string> words;
  bool gbnf = false;
  bool regex = false;
  bool in_order = false;
  bool compact = false;
  bool annotate = false;

 private:
  void declare(Flags& flags) override {
    flags.group("Grammar");
    flags.words(
        words, "check LANGUAGE TEXT | explain SCHEMA",
        "each a text, or a file with it. check: whether the text is one of the language, where it leaves it, "
        "and what was allowed there. explain: what becomes of each keyword of a schema");
    flags.toggle("--gbnf", gbnf, "the language is a grammar in the format of llama.cpp");
    flags.toggle("--regex", regex, "the language is a regular expression of whole texts");
    flags.toggle("--in-order", in_order, "members only in the order of the schema, as answers have them");
    flags.toggle("--compact", compact, "no white space, as answers have it");
    flags.toggle("--no-formats", annotate, "format is an annotation");
  }
};

/// A text, or that of a file of this name.
std::string text_or_file(const std::string& word) {
  const bool is_text =
      word.empty() || word.size() > 1024 || word.find_first_of("{[\"\n") != std::string::npos;
  return !is_text && io::exists(word) ? read_text(word) : word;
}

schema::SchemaOptions options_of(const GrammarVerb& verb) {
  schema::SchemaOptions options;
  options.order = verb.in_order ? schema::MemberOrder::schema : schema::MemberOrder::any;
  options.whitespace = verb.compact ? schema::Whitespace::compact : schema::Whitespace::any;
  options.formats = verb.annotate ? schema::Formats::annotation : schema::Formats::enforced;
  return options;
}

constraint::Language language_of(const GrammarVerb& verb, const std::string& text) {
  if (verb.regex) return constraint::regex_language(text);
  if (!verb.gbnf) {
    const std::string_view begin =
        std::string_view(text).substr(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
    MICA_CHECK(begin.starts_with('{') || begin.starts_with("true") || begin.starts_with("false"), usage, "'",
               escaped(text, 60),
               "' is no JSON Schema, and no file; add --gbnf for a grammar, --regex for a "
               "regular expression");
    return schema::parse_schema(text, options_of(verb));
  }
  constraint::GbnfOptions options;
  options.token_text = [](std::string_view name) { return std::string(name); };
  return constraint::parse_gbnf(text, options);
}

int check(const GrammarVerb& verb) {
  MICA_CHECK(verb.words.size() == 3, usage, "grammar check: needed: a schema or grammar, and a text");
  constraint::Language language = language_of(verb, text_or_file(verb.words[1]));
  constraint::Recognizer recognizer(language);
  const std::string text = text_or_file(verb.words[2]);
  constraint::Departure found = constraint::read_text(recognizer, text);
  // A file ends with a line end, which is not a part of the text.
  if (!found.is_text && text.ends_with('\n') && found.bytes + 1 == text.size())
    found = constraint::read_text(recognizer, std::string_view(text).substr(0, text.size() - 1));
  const auto line =
      1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(found.bytes), '\n');
  std::string allowed, json;
  for (const std::string& each : found.allowed) {
    allowed += "\n  " + each;
    json += join(json.empty() ? "" : ",", json_string(each));
  }
  if (verb.json) {
    print(join("{\"is_text\":", found.is_text, ",\"bytes\":", found.bytes, ",\"line\":", line,
               ",\"allowed\":[", json, "]}\n"));
  } else if (found.is_text) {
    print("The text is one of the language.\n");
  } else {
    const std::size_t from = found.bytes > 40 ? found.bytes - 40 : 0;
    print(
        join("The text leaves the language at byte ", found.bytes, ", line ", line, ", after\n  ",
             escaped(std::string_view(text).substr(from, found.bytes - from)), "\nbefore\n  ",
             found.bytes == text.size() ? "the end" : escaped(std::string_view(text).substr(found.bytes), 40),
             "\nAllowed here:", allowed, "\n"));
  }
  return found.is_text ? 0 : exit_code(ErrorCode::failed);
}

int explain(const GrammarVerb& verb) {
  MICA_CHECK(verb.words.size() == 2 && !verb.gbnf && !verb.regex, usage,
             "grammar explain: needed: one JSON Schema, as a file or a text; found ", verb.words.size() - 1,
             verb.gbnf || verb.regex ? " and a flag of another language" : "", "; see mica help grammar");
  const schema::Explanation found = schema::explain(text_or_file(verb.words[1]), options_of(verb));
  std::string text, json;
  for (const auto& [place, keyword, what] : found.keywords) {
    text +=
        join(what, std::string(12 - what.size(), ' '), escaped(place, 200), " ", escaped(keyword, 60), "\n");
    json += join(json.empty() ? "" : ",", "{\"place\":", json_string(place),
                 ",\"keyword\":", json_string(keyword), ",\"what\":\"", what, "\"}");
  }
  if (verb.json) {
    std::string refusals;
    for (const std::string& each : found.refusals)
      refusals += (refusals.empty() ? "" : ",") + json_string(each);
    print(join("{\"refusals\":[", refusals, "],\"keywords\":[", json, "]}\n"));
  } else {
    for (const std::string& each : found.refusals) text += "Refused: " + each + "\n";
    print(text + (found.refusals.empty() ? "The schema is enforced.\n" : ""));
  }
  return found.refusals.empty() ? 0 : exit_code(ErrorCode::unsupported);
}

int GrammarVerb::run() {
  MICA_CHECK(!words.empty() && (words[0] == "check" || words[0] == "explain"), usage,
             "grammar: needed: check LANGUAGE TEXT, or explain SCHEMA");
  MICA_CHECK(!gbnf || !regex, usage, "--gbnf and --regex exclude each other; choose one.");
  return words[0] == "check" ? check(*this) : explain(*this);
}

}  // namespace

AnyVerb make_grammar() { return std::make_unique<GrammarVerb>(); }

}  // namespace mica::program
