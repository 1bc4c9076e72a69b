// SPDX-License-Identifier: Apache-2.0
//
// Grammars in GBNF, the format of llama.cpp, as languages. Where GBNF names a token, the language has the
// bytes of the token, so that other tokens with the same bytes are allowed too.
//
//   root   ::= "[" digits ("," digits)* "]"   # a comment
//   digits ::= [0-9]{1,3}
//
// Limit: !<token> is supported with * and + after it: a text without the bytes of the token.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/base/error.hpp"
#include "mica/constraint/code_points.hpp"
#include "mica/constraint/detail/gbnf_rules.hpp"
#include "mica/constraint/detail/pattern_reader.hpp"
#include "mica/constraint/expressions.hpp"
#include "mica/constraint/rules.hpp"
#include "mica/text/utf8.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace mica::constraint {

/// How a grammar is read.
struct GbnfOptions {
  std::string root = "root";  // the rule of the whole text
  /// The bytes that stand for a token: of "[1000]" by its id, or of its text with the brackets, "<think>".
  /// TokenTrie::bytes_of() of the id has them. Empty: no such token.
  std::function<std::string(std::string_view)> token_text = {};
  std::size_t max_bytes = std::size_t{1} << 20;
  std::size_t max_rules = 100'000;
  std::size_t max_nesting = 128;                             // of groups
  std::uint32_t max_repetitions = 100'000;                   // the largest number in {n,m}
  std::size_t max_expression_bytes = std::size_t{64} << 20;  // of the language
};

namespace detail {

/// Reads one grammar.
class GbnfParser {
 public:
  GbnfParser(std::string_view text, const GbnfOptions& options)
      : in_(text), options_(options), rules_(options.max_expression_bytes) {}

  [[nodiscard]] Language parse();

 private:
  using NodeId = GbnfRules::NodeId;
  struct Name {
    std::uint32_t rule;
    std::size_t pos;  // where it was used first
    bool defined = false;
  };
  struct Times {
    std::uint32_t min, max;
  };

  [[noreturn]] void fail(ErrorCode code, std::size_t pos, std::string_view found,
                         std::string_view remedy) const;
  [[noreturn]] void expected(std::string_view allowed) const;
  void skip_spaces(bool lines);
  [[nodiscard]] std::string_view name();
  [[nodiscard]] Name& named(std::string_view name, std::size_t pos);
  void rule();
  [[nodiscard]] NodeId alternatives(std::size_t nesting);
  [[nodiscard]] NodeId sequence(std::size_t nesting);
  [[nodiscard]] std::optional<NodeId> item(std::size_t nesting);
  [[nodiscard]] std::optional<Times> quantifier(bool lines);
  [[nodiscard]] Times numbers(bool lines);
  [[nodiscard]] std::uint32_t character(std::string_view place);
  [[nodiscard]] std::uint32_t escape();
  [[nodiscard]] NodeId literal();
  [[nodiscard]] NodeId character_class();
  [[nodiscard]] NodeId other_tokens(bool lines);
  [[nodiscard]] std::string token_text();

  PatternReader in_;
  const GbnfOptions& options_;
  GbnfRules rules_;
  std::unordered_map<std::string_view, Name> names_;
};

[[nodiscard]] constexpr bool is_name_character(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '-' || c == '_';
}

inline void GbnfParser::fail(ErrorCode code, std::size_t pos, std::string_view found,
                             std::string_view remedy) const {
  const std::string_view before = in_.text().substr(0, pos);
  const std::size_t line_begin = before.rfind('\n') + 1;  // 0 where there is none
  raise(code, "line ", 1 + std::count(before.begin(), before.end(), '\n'), ", column ", pos - line_begin + 1,
        " of the grammar: found ", found, "; ", remedy);
}

inline void GbnfParser::expected(std::string_view allowed) const {
  const std::string_view left = in_.left();
  const std::string found =
      left.empty() ? "the end" : join("'", shown(left.substr(0, text::utf8_claimed_bytes(left[0]))), "'");
  fail(ErrorCode::usage, in_.pos(), found, join("allowed is ", allowed));
}

/// Steps over spaces and comments, and over ends of lines if they mean nothing here.
inline void GbnfParser::skip_spaces(bool lines) {
  for (;;) {
    const char c = in_.peek();
    const bool end = c == '\n' || c == '\r';
    if (in_.done()) return;
    if (c == '#') {
      in_.seek(std::min(in_.text().find_first_of("\r\n", in_.pos()), in_.text().size()));
    } else if (c == ' ' || c == '\t' || (end && lines)) {
      in_.seek(in_.pos() + 1);
    } else {
      return;
    }
  }
}

inline std::string_view GbnfParser::name() {
  const std::size_t begin = in_.pos();
  while (is_name_character(in_.peek())) in_.seek(in_.pos() + 1);
  return in_.text().substr(begin, in_.pos() - begin);
}

inline GbnfParser::Name& GbnfParser::named(std::string_view name, std::size_t pos) {
  const auto known = names_.find(name);
  if (known != names_.end()) return known->second;
  if (names_.size() == options_.max_rules)
    fail(ErrorCode::limit, pos, join("more than ", options_.max_rules, " rules"), "join some");
  return names_.emplace(name, Name{rules_.declare(std::string(name)), pos}).first->second;
}

inline Language GbnfParser::parse() {
  MICA_CHECK(in_.text().size() <= options_.max_bytes, limit, "a grammar has ", in_.text().size(),
             " bytes, allowed are ", options_.max_bytes, ": make it smaller");
  for (skip_spaces(true); !in_.done(); skip_spaces(true)) rule();
  const Name* unknown = nullptr;
  for (const auto& [name, each] : names_) {
    if (!each.defined && (unknown == nullptr || each.pos < unknown->pos)) unknown = &each;
  }
  if (unknown != nullptr) {
    in_.seek(unknown->pos);
    fail(ErrorCode::usage, unknown->pos, join("the rule '", shown(name()), "', which is not defined"),
         "add a line that defines it");
  }
  const auto root = names_.find(options_.root);
  MICA_CHECK(root != names_.end(), usage, "the grammar has no rule '", shown(options_.root),
             "': its texts are those of this rule");
  return rules_.language(root->second.rule);
}

/// name ::= alternatives, and the end of the line.
inline void GbnfParser::rule() {
  const std::size_t begin = in_.pos();
  const std::string_view text = name();
  if (text.empty()) expected("the name of a rule: letters, digits, - and _");
  skip_spaces(false);
  if (!in_.take("::=")) expected("::=");
  Name& name = named(text, begin);
  if (name.defined)
    fail(ErrorCode::usage, begin, join("a second definition of the rule '", shown(text), "'"),
         "join them with |");
  name.defined = true;
  const std::uint32_t index = name.rule;
  skip_spaces(true);
  rules_.define(index, alternatives(0));
  if (!in_.done() && in_.peek() != '\n' && in_.peek() != '\r')
    expected(
        "a text in quotes, a set in [ ], a rule, a group in ( ), a token in < >, a quantifier, |, or the end "
        "of the line");
}

inline GbnfParser::NodeId GbnfParser::alternatives(std::size_t nesting) {
  std::vector<NodeId> parts = {sequence(nesting)};
  for (;;) {
    const std::size_t end = in_.pos();
    skip_spaces(true);  // a | at the beginning of a line: no rule begins like this
    if (!in_.take("|")) {
      in_.seek(nesting > 0 ? in_.pos() : end);
      return rules_.alt(std::move(parts));
    }
    skip_spaces(true);
    parts.push_back(sequence(nesting));
  }
}

inline GbnfParser::NodeId GbnfParser::sequence(std::size_t nesting) {
  std::vector<NodeId> parts;
  for (;;) {
    const std::size_t begin = in_.pos();
    auto part = item(nesting);
    if (!part) {
      if (in_.peek() != '\0' && std::string_view("*+?{").find(in_.peek()) != std::string_view::npos)
        fail(ErrorCode::usage, begin, "a quantifier with nothing before it",
             "allowed is a text, a set, a rule or a group");
      return rules_.cat(std::move(parts));
    }
    skip_spaces(nesting > 0);
    while (const auto times = quantifier(nesting > 0)) part = rules_.repeat(*part, times->min, times->max);
    parts.push_back(*part);
  }
}

/// The next part of a sequence, without its quantifier; nothing where none begins.
inline std::optional<GbnfParser::NodeId> GbnfParser::item(std::size_t nesting) {
  const std::size_t begin = in_.pos();
  if (in_.take("\"")) return literal();
  if (in_.take("[")) return character_class();
  if (in_.take(".")) return rules_.expression(encode_utf8(rules_.expressions(), CodePoints::all()));
  if (in_.take("!")) return other_tokens(nesting > 0);
  if (in_.peek() == '<') return rules_.literal(token_text());
  if (is_name_character(in_.peek())) return rules_.reference(named(name(), begin).rule);
  if (!in_.take("(")) return std::nullopt;
  if (nesting == options_.max_nesting)
    fail(ErrorCode::limit, begin, join("more than ", nesting, " nested groups"), "make rules of some");
  skip_spaces(true);
  const NodeId inner = alternatives(nesting + 1);
  if (!in_.take(")")) expected(") at the end of a group");
  return inner;
}

inline std::optional<GbnfParser::Times> GbnfParser::quantifier(bool lines) {
  std::optional<Times> out;
  if (in_.take("*"))
    out = {0, Expressions::unlimited};
  else if (in_.take("+"))
    out = {1, Expressions::unlimited};
  else if (in_.take("?"))
    out = {0, 1};
  else if (in_.take("{"))
    out = numbers(lines);
  if (out) skip_spaces(lines);
  return out;
}

/// What stands after a {: n}, n,} or n,m}.
inline GbnfParser::Times GbnfParser::numbers(bool lines) {
  const std::size_t begin = in_.pos();
  skip_spaces(lines);
  const auto min = in_.number();
  if (!min) expected("a number");
  auto max = min;
  skip_spaces(lines);
  if (in_.take(",")) {
    skip_spaces(lines);
    max = in_.number();
    skip_spaces(lines);
  }
  if (!in_.take("}")) expected("} after {n, {n, or {n,m");
  if (std::max(*min, max.value_or(0)) > options_.max_repetitions)
    fail(ErrorCode::limit, begin, "a large number of repetitions",
         join("allowed are numbers up to ", options_.max_repetitions));
  if (max && *max < *min) fail(ErrorCode::usage, begin, "{n,m} with m < n", "exchange the numbers");
  return {*min, max.value_or(Expressions::unlimited)};
}

/// A character of a text or a set, perhaps escaped.
inline std::uint32_t GbnfParser::character(std::string_view place) {
  if (in_.done()) expected(place);
  if (in_.take("\\")) return escape();
  const auto c = in_.character();
  if (!c) expected("text in UTF-8");
  return *c;
}

/// What stands after a backslash.
inline std::uint32_t GbnfParser::escape() {
  constexpr std::string_view letters = "tnr\\\"[]-", values = "\t\n\r\\\"[]-";
  const std::size_t begin = in_.pos() - 1;
  const std::size_t known = in_.done() ? std::string_view::npos : letters.find(in_.peek());
  if (known != std::string_view::npos) {
    in_.seek(in_.pos() + 1);
    return static_cast<std::uint32_t>(values[known]);
  }
  const std::size_t digits = in_.take("x") ? 2 : in_.take("u") ? 4 : in_.take("U") ? 8 : 0;
  if (digits == 0) expected("one of t n r \\ \" [ ] - x u U after a backslash");
  const auto value = in_.hex(digits);
  if (!value) expected(join(digits, " hexadecimal digits"));
  const bool surrogate = *value >= CodePoints::first_surrogate && *value <= CodePoints::last_surrogate;
  if (*value > CodePoints::max || surrogate)
    fail(ErrorCode::usage, begin,
         join("'", in_.text().substr(begin, in_.pos() - begin), "', which is no character"),
         "allowed are code points up to 10FFFF without surrogates; write \\U0001F600 for a pair of them");
  return *value;
}

/// What stands after a quote.
inline GbnfParser::NodeId GbnfParser::literal() {
  std::string text;
  while (!in_.take("\"")) append_utf8(character("a quote at the end of a text"), text);
  return rules_.literal(std::move(text));
}

/// What stands after a [.
inline GbnfParser::NodeId GbnfParser::character_class() {
  const std::size_t begin = in_.pos() - 1;
  const bool negative = in_.take("^");
  CodePoints set;
  while (!in_.take("]")) {
    const std::size_t pos = in_.pos();
    const std::uint32_t first = character("] at the end of a set");
    std::uint32_t last = first;
    if (in_.peek() == '-' && in_.peek(1) != ']') {
      in_.seek(in_.pos() + 1);
      last = character("the end of a range");
    }
    if (last < first)
      fail(ErrorCode::usage, pos, "a range whose end is before its beginning",
           "exchange the ends, or write \\- for the character");
    set.insert(first, last);
  }
  if (set.empty())
    fail(ErrorCode::usage, begin, "a set without characters", "add one, or write . for any character");
  return rules_.expression(encode_utf8(rules_.expressions(), negative ? set.complement() : set));
}

/// <[id]> or <text>, as bytes.
inline std::string GbnfParser::token_text() {
  const std::size_t begin = in_.pos();
  if (in_.peek() != '<') expected("a token in < >");
  const std::size_t end = in_.text().find_first_of(">\r\n", begin);
  if (end == std::string_view::npos || in_.text()[end] != '>')
    fail(ErrorCode::usage, begin, "a token without >", "write <[id]> or <text>");
  const std::string_view written = in_.text().substr(begin, end + 1 - begin);
  in_.seek(end + 1);
  const bool by_id = written.starts_with("<[") && written.ends_with("]>");
  if (!options_.token_text)
    fail(ErrorCode::unsupported, begin, join("the token ", shown(written)),
         "the vocabulary is not known here: write its text in quotes");
  std::string text = options_.token_text(by_id ? written.substr(1, written.size() - 2) : written);
  if (text.empty())
    fail(ErrorCode::usage, begin, join("the token ", shown(written)), "the vocabulary has no such token");
  return text;
}

/// What stands after a !: texts of other tokens, as the texts in which the bytes of the token do not occur.
inline GbnfParser::NodeId GbnfParser::other_tokens(bool lines) {
  const std::size_t begin = in_.pos() - 1;
  Expressions& x = rules_.expressions();
  const ExprId token = x.literal(token_text());
  skip_spaces(lines);
  const bool star = in_.take("*");
  if (!star && !in_.take("+"))
    fail(ErrorCode::unsupported, begin, "other tokens than one, without * or +",
         "tokens are not counted: write !<token>* or !<token>+");
  skip_spaces(lines);
  const ExprId special = x.cat({x.literal("\xFF"), x.repeat(x.set(ByteSet('0', '9')), 1), x.literal(";")});
  const ExprId one = x.alt(encode_utf8(x, CodePoints::all()), special);
  return rules_.expression(
      x.both(x.repeat(one, star ? 0 : 1), x.complement(x.cat({ExprId::any, token, ExprId::any}))));
}

}  // namespace detail

/// The texts of a grammar. A rule that begins with itself is written as a repetition; a rule that never ends
/// is left out. Raises ErrorCode::usage for a text that is no grammar, with the line, the column and the
/// allowed syntax; ErrorCode::unsupported for rules that may begin with each other, and ErrorCode::limit.
[[nodiscard]] inline Language parse_gbnf(std::string_view text, const GbnfOptions& options = {}) {
  return detail::GbnfParser(text, options).parse();
}

}  // namespace mica::constraint
