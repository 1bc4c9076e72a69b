// SPDX-License-Identifier: Apache-2.0
//
// Regular expressions of ECMA-262 as expressions: the syntax of its `u` flag for escapes of code points, and
// the lenient one without it for brackets and for escapes of punctuation. Lazy repetitions accept the same
// texts as greedy ones, and groups capture nothing.
//
// Limit: no back references, lookbehind, \b, \B, flags; of \p{...} only Any, ASCII, ASCII_Hex_Digit and Cc.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/base/error.hpp"
#include "mica/constraint/code_points.hpp"
#include "mica/constraint/detail/pattern_reader.hpp"
#include "mica/constraint/detail/regex_tree.hpp"
#include "mica/constraint/expressions.hpp"
#include "mica/constraint/rules.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::constraint {

/// How a regular expression is read.
struct RegexOptions {
  /// The expression of one character of a set.
  std::function<ExprId(Expressions&, const CodePoints&)> encode = &encode_utf8;
  bool whole = true;  // the text is a match; false: a match is somewhere in the text
  std::size_t max_bytes = std::size_t{64} << 10;
  std::size_t max_nesting = 128;            // of groups
  std::uint32_t max_repetitions = 100'000;  // the largest number in {n,m}
};

namespace detail {

[[nodiscard]] inline CodePoints regex_digits() { return {{'0', '9'}}; }
[[nodiscard]] inline CodePoints regex_word() { return {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}; }
[[nodiscard]] inline CodePoints regex_spaces() {
  return {{'\t', '\r'},     {' ', ' '},       {0xA0, 0xA0},     {0x1680, 0x1680}, {0x2000, 0x200A},
          {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
}
[[nodiscard]] inline CodePoints regex_line_ends() { return {{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}}; }

/// Reads one pattern.
class RegexParser {
 public:
  RegexParser(std::string_view pattern, Expressions& x, const RegexOptions& options)
      : in_(pattern), options_(options), x_(x), build_(x) {}

  [[nodiscard]] ExprId parse();

 private:
  using Part = RegexPart;
  using Kind = RegexPart::Kind;
  /// What an escape stands for: one code point, or a set.
  struct Characters {
    CodePoints set;
    std::optional<std::uint32_t> single;
  };
  struct Times {
    std::uint32_t min, max;
  };

  [[noreturn]] void fail(ErrorCode code, std::size_t pos, std::string_view found,
                         std::string_view remedy) const {
    raise(code, "the regular expression '", shown(in_.text()), "' has ", found, " at byte ", pos, ": ",
          remedy);
  }
  [[noreturn]] void unsupported(std::size_t pos, std::string_view found, std::string_view remedy) const {
    fail(ErrorCode::unsupported, pos, found, remedy);
  }
  [[nodiscard]] Part alternatives(std::size_t nesting);
  [[nodiscard]] Part sequence(std::size_t nesting);
  [[nodiscard]] Part term(std::size_t nesting);
  [[nodiscard]] Part group(std::size_t nesting);
  [[nodiscard]] Part quantified(Part part, std::size_t begin);
  [[nodiscard]] std::optional<Times> quantifier();
  [[nodiscard]] CodePoints character_class();
  [[nodiscard]] Characters class_item();
  [[nodiscard]] Characters escape(bool in_class);
  [[nodiscard]] std::uint32_t character_escape(std::uint32_t c, bool in_class, std::size_t begin);
  [[noreturn]] void refuse_escape(char letter, std::size_t begin) const;
  [[nodiscard]] std::uint32_t unicode_escape(std::size_t begin);
  [[nodiscard]] CodePoints property(std::size_t begin);
  [[nodiscard]] Part one_of(const CodePoints& set) {
    return RegexBuilder::character(options_.encode(x_, set));
  }

  PatternReader in_;
  const RegexOptions& options_;
  Expressions& x_;
  RegexBuilder build_;
};

inline ExprId RegexParser::parse() {
  MICA_CHECK(in_.text().size() <= options_.max_bytes, limit, "a regular expression has ", in_.text().size(),
             " bytes, allowed are ", options_.max_bytes, ": split it");
  const Part pattern = alternatives(0);
  if (!in_.done()) fail(ErrorCode::usage, in_.pos(), "a ) without (", "write \\) for the character");
  RegexAssertions assertions(x_, in_.text());
  const auto whole = assertions.before(pattern, {ExprId::empty, ExprId::empty});
  if (options_.whole) return whole.first;
  const auto found = assertions.before(pattern, {ExprId::any, ExprId::any});
  const ExprId character = options_.encode(x_, CodePoints::all());
  const ExprId out = found.first == found.later
                         ? x_.cat(x_.repeat(character, 0), found.later)
                         : x_.alt(found.first, x_.cat(x_.repeat(character, 1), found.later));
  // What follows a match is any text, and not any bytes.
  const bool bounded = found.first == whole.first && found.later == whole.later;
  return bounded ? out : x_.both(out, x_.repeat(character, 0));
}

inline RegexPart RegexParser::alternatives(std::size_t nesting) {
  if (nesting > options_.max_nesting)
    fail(ErrorCode::limit, in_.pos(), join(nesting, " nested groups"),
         join("allowed are ", options_.max_nesting));
  std::vector<Part> parts;
  do parts.push_back(sequence(nesting));
  while (in_.take("|"));
  return build_.alt(std::move(parts));
}

inline RegexPart RegexParser::sequence(std::size_t nesting) {
  std::vector<Part> parts;
  while (!in_.done() && in_.peek() != '|' && in_.peek() != ')') {
    const std::size_t begin = in_.pos();
    if (quantifier())
      fail(ErrorCode::usage, begin, "a quantifier with nothing before it",
           "write a backslash before the character");
    parts.push_back(quantified(term(nesting), begin));
  }
  return build_.cat(std::move(parts));
}

inline RegexPart RegexParser::term(std::size_t nesting) {
  const std::size_t begin = in_.pos();
  if (in_.take("^")) return RegexBuilder::anchor(Kind::begin);
  if (in_.take("$")) return RegexBuilder::anchor(Kind::end);
  if (in_.take("(")) return group(nesting + 1);
  if (in_.take("[")) return one_of(character_class());
  if (in_.take(".")) return one_of(regex_line_ends().complement());
  if (in_.take("\\")) return one_of(escape(false).set);
  const auto c = in_.character();
  if (!c) fail(ErrorCode::usage, begin, "bytes that are not UTF-8", "write the pattern in UTF-8");
  return one_of({{*c, *c}});
}

inline RegexPart RegexParser::group(std::size_t nesting) {
  const std::size_t begin = in_.pos() - 1;
  bool looks = false, negative = false;
  if (in_.take("?")) {
    if (in_.take("<=") || in_.take("<!"))
      unsupported(begin, "a lookbehind", "state with a lookahead what the text before it may be");
    looks = in_.peek() == '=' || in_.peek() == '!';
    negative = in_.peek() == '!';
    if (in_.take("<")) {
      const std::size_t name = in_.left().find('>');
      if (name == 0 || name == std::string_view::npos)
        fail(ErrorCode::usage, begin, "a group with a name that does not end", "write (?<name>...)");
      in_.seek(in_.pos() + name + 1);
    } else if (!in_.take(":") && !in_.take("=") && !in_.take("!")) {
      unsupported(begin, join("the group '(?", shown(in_.left().substr(0, 1)), "'"),
                  "known are (?:, (?=, (?! and (?<name>; instead of a flag for case write [aA]");
    }
  }
  Part body = alternatives(nesting);
  if (!in_.take(")")) fail(ErrorCode::usage, begin, "a ( without )", "write \\( for the character");
  return looks ? RegexBuilder::lookahead(std::move(body), negative) : body;
}

inline RegexPart RegexParser::quantified(Part part, std::size_t begin) {
  const std::size_t pos = in_.pos();
  const auto times = quantifier();
  if (!times) return part;
  const std::string_view term = in_.text().substr(begin);
  if (term[0] == '^' || term[0] == '$' || term.starts_with("(?=") || term.starts_with("(?!"))
    fail(ErrorCode::usage, pos, "a quantifier after an assertion", "leave out the quantifier");
  if (times->min > times->max)
    fail(ErrorCode::usage, pos, "a quantifier {n,m} with m < n", "exchange the numbers");
  static_cast<void>(in_.take("?"));  // lazy: the same texts
  return build_.repeat(std::move(part), times->min, times->max, begin);
}

/// A quantifier, if one is next. A { that begins none is a character.
inline std::optional<RegexParser::Times> RegexParser::quantifier() {
  if (in_.take("*")) return Times{0, Part::unlimited};
  if (in_.take("+")) return Times{1, Part::unlimited};
  if (in_.take("?")) return Times{0, 1};
  const std::size_t begin = in_.pos();
  if (!in_.take("{")) return std::nullopt;
  const auto min = in_.number();
  std::optional<std::uint32_t> max = min;
  if (min && in_.take(",")) max = in_.peek() == '}' ? Part::unlimited : in_.number();
  if (!min || !max || !in_.take("}")) {
    in_.seek(begin);
    return std::nullopt;
  }
  const bool open = in_.text()[in_.pos() - 2] == ',';
  const std::uint32_t largest = open ? *min : std::max(*min, *max);
  if (largest > options_.max_repetitions)
    fail(ErrorCode::limit, begin, "a quantifier with a large number",
         join("allowed are numbers up to ", options_.max_repetitions));
  return Times{*min, *max};
}

/// What stands after a [.
inline CodePoints RegexParser::character_class() {
  const std::size_t begin = in_.pos() - 1;
  const bool negative = in_.take("^");
  CodePoints out;
  while (!in_.take("]")) {
    if (in_.done()) fail(ErrorCode::usage, begin, "a [ without ]", "write \\[ for the character");
    const std::size_t pos = in_.pos();
    const Characters first = class_item();
    out |= first.set;
    if (in_.peek() != '-' || in_.peek(1) == ']' || in_.left().size() < 2) continue;
    in_.seek(in_.pos() + 1);
    const Characters last = class_item();
    out |= last.set;
    if (!first.single || !last.single) {
      out.insert('-');  // [\w-x] has no range
    } else if (*first.single > *last.single) {
      fail(ErrorCode::usage, pos, "a range whose end is before its beginning",
           "exchange the ends, or write \\- for the character");
    } else {
      out.insert(*first.single, *last.single);
    }
  }
  return negative ? out.complement() : out;
}

inline RegexParser::Characters RegexParser::class_item() {
  const std::size_t begin = in_.pos();
  if (in_.take("\\")) return escape(true);
  const auto c = in_.character();
  if (!c) fail(ErrorCode::usage, begin, "bytes that are not UTF-8", "write the pattern in UTF-8");
  return {{{*c, *c}}, *c};
}

/// What stands after a backslash.
inline RegexParser::Characters RegexParser::escape(bool in_class) {
  const std::size_t begin = in_.pos() - 1;
  const auto c = in_.character();
  if (!c) fail(ErrorCode::usage, begin, "a backslash at its end", "write \\\\ for the character");
  if (*c == 'p') return {property(begin), {}};
  if (*c == 'P') return {property(begin).complement(), {}};
  constexpr std::string_view sets = "dDwWsS";
  const std::size_t at = *c < 0x80 ? sets.find(static_cast<char>(*c)) : std::string_view::npos;
  if (at != std::string_view::npos) {
    const CodePoints set = at < 2 ? regex_digits() : at < 4 ? regex_word() : regex_spaces();
    return {at % 2 == 0 ? set : set.complement(), {}};
  }
  const std::uint32_t one = character_escape(*c, in_class, begin);
  return {{{one, one}}, one};
}

/// What stands after a backslash and c, as one character.
inline std::uint32_t RegexParser::character_escape(std::uint32_t c, bool in_class, std::size_t begin) {
  constexpr std::string_view controls = "tnvfr", values = "\t\n\v\f\r";
  if (c >= 0x80 || c == '_' || !regex_word().contains(c)) return c;  // itself
  const auto letter = static_cast<char>(c);
  if (const std::size_t at = controls.find(letter); at != std::string_view::npos)
    return static_cast<std::uint32_t>(values[at]);
  if (letter == 'u') return unicode_escape(begin);
  if (letter == 'b' && in_class) return '\b';
  if (letter == '0' && !is_digit(in_.peek())) return 0;
  if (letter == 'x') {
    if (const auto value = in_.hex(2)) return *value;
    fail(ErrorCode::usage, begin, "\\x without two hexadecimal digits", "write \\xHH");
  }
  if (letter == 'c') {
    const char control = in_.peek();
    if (is_digit(control) || control == '_' || !regex_word().contains(static_cast<std::uint8_t>(control)))
      fail(ErrorCode::usage, begin, "\\c without a letter", "write \\\\c for the characters");
    in_.seek(in_.pos() + 1);
    return static_cast<std::uint32_t>(control) % 32;
  }
  refuse_escape(letter, begin);
}

inline void RegexParser::refuse_escape(char letter, std::size_t begin) const {
  constexpr std::string_view around = "write the characters that may be before and after it";
  if (letter == '0') unsupported(begin, "an octal escape", "write \\xHH");
  if (letter == 'b') unsupported(begin, "\\b, a boundary of words", around);
  if (letter == 'B') unsupported(begin, "\\B, a place within a word", around);
  if (letter == 'k' || is_digit(letter)) unsupported(begin, "a back reference", "write the alternatives out");
  fail(ErrorCode::usage, begin, join("the unknown escape \\", letter),
       "remove the backslash, or use ^ and $ instead of \\A and \\Z");
}

/// \uHHHH, a pair of surrogates, or \u{H...}; what stands after the u.
inline std::uint32_t RegexParser::unicode_escape(std::size_t begin) {
  if (in_.take("{")) {
    std::uint32_t value = 0;
    std::size_t digits = 0;
    for (; hex_value(in_.peek()) < 16 && value <= CodePoints::max; ++digits) value = value << 4 | *in_.hex(1);
    if (digits > 0 && value <= CodePoints::max && in_.take("}")) return value;
  } else if (const auto value = in_.hex(4)) {
    const std::size_t end = in_.pos();
    if (*value >= 0xD800 && *value < 0xDC00 && in_.take("\\u")) {
      const auto low = in_.hex(4);
      if (low && *low >= 0xDC00 && *low < 0xE000)
        return 0x10000 + ((*value - 0xD800) << 10) + (*low - 0xDC00);
      in_.seek(end);
    }
    return *value;
  }
  fail(ErrorCode::usage, begin, "\\u without a code point", "write \\uHHHH or \\u{H}, at most \\u{10FFFF}");
}

/// The set of \p{...}; what stands after the p.
inline CodePoints RegexParser::property(std::size_t begin) {
  static const std::pair<std::string_view, CodePoints> properties[] = {
      {"Any", CodePoints::all()},
      {"ASCII", {{0, 0x7F}}},
      {"ASCII_Hex_Digit", {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}},
      {"Cc", {{0, 0x1F}, {0x7F, 0x9F}}},
  };
  const std::size_t end = in_.left().find('}');
  if (in_.peek() == '{' && end != std::string_view::npos) {
    const std::string_view name = in_.left().substr(1, end - 1);
    for (const auto& [known, set] : properties) {
      if (known != name) continue;
      in_.seek(in_.pos() + end + 1);
      return set;
    }
  }
  unsupported(begin,
              join("the property '", shown(in_.left().substr(0, std::min<std::size_t>(end, 40) + 1)), "'"),
              "known are {Any}, {ASCII}, {ASCII_Hex_Digit} and {Cc}; write the ranges of others");
}

}  // namespace detail

/// The texts that a regular expression matches. With lookaheads these may be none
/// (Expressions::accepts_some() tells). Raises ErrorCode::usage for a text that is no pattern,
/// ErrorCode::unsupported and ErrorCode::limit; the message has the position in the pattern and a remedy.
/// Cost: linear in the pattern, about a second for the longest one.
[[nodiscard]] inline ExprId parse_regex(std::string_view pattern, Expressions& expressions,
                                        const RegexOptions& options = {}) {
  return detail::RegexParser(pattern, expressions, options).parse();
}

/// The same as a language.
[[nodiscard]] inline Language regex_language(std::string_view pattern, const RegexOptions& options = {}) {
  Language out{std::make_unique<Expressions>(), std::make_unique<FixedRules>(), ExprId::none};
  out.start = parse_regex(pattern, *out.expressions, options);
  return out;
}

}  // namespace mica::constraint
