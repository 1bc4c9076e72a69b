// SPDX-License-Identifier: Apache-2.0
//
// Expressions of strings as JSON writes them, or as another Spelling does. Where a schema says more about a
// string than its length, each character has one spelling: as it is, or with the shortest escape if JSON
// needs one. A string that may be anything may have every escape.
#pragma once

#include "mica/constraint/code_points.hpp"
#include "mica/constraint/expressions.hpp"
#include "mica/constraint/regex.hpp"
#include "mica_tools/schema/case.hpp"
#include "mica_tools/schema/formats.hpp"
#include "mica_tools/schema/spelling.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace mica::schema {

using constraint::CodePoints;

/// A text as it stands between the quotes of a JSON string, each character in its one spelling.
[[nodiscard]] inline std::string json_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<std::uint8_t>(c);
    constexpr std::string_view plain = "\"\\\b\f\n\r\t", letters = "\"\\bfnrt";
    const std::size_t at = plain.find(c);
    if (at != std::string_view::npos) {
      out += {'\\', letters[at]};
    } else if (byte < 0x20) {
      constexpr std::string_view digits = "0123456789abcdef";
      out += {'\\', 'u', '0', '0', digits[byte >> 4], digits[byte & 15]};
    } else {
      out += c;
    }
  }
  return out;
}

/// One character of the set within a JSON string.
[[nodiscard]] inline ExprId encode_json(Expressions& x, const CodePoints& characters) {
  std::vector<constraint::Branch> escapes;
  const auto escape = [&](std::uint32_t c) {
    if (characters.contains(c)) escapes.push_back({json_escaped(std::string(1, static_cast<char>(c)))});
  };
  for (std::uint32_t c = 0; c < 0x20; ++c) escape(c);
  escape('"');
  escape('\\');
  CodePoints plain;
  for (const auto& range : characters.ranges()) {
    for (std::uint32_t first = std::max<std::uint32_t>(range.first, 0x20); first <= range.last;) {
      std::uint32_t last = range.last;
      if (first <= '"' && last >= '"') last = '"' - 1;
      if (first > '"' && first <= '\\' && last >= '\\') last = '\\' - 1;
      if (first <= last && first != '"' && first != '\\') plain.insert(first, last);
      first = first == '"' || first == '\\' ? first + 1 : last + 1;
    }
  }
  return x.alt(x.table(std::move(escapes)), constraint::encode_utf8(x, plain));
}

/// Makes expressions of strings and names.
class Strings {
 public:
  explicit Strings(Expressions& expressions, Spelling spelling = {})
      : x_(expressions),
        spelling_(std::move(spelling)),
        encode_(spelling_.has_escapes ? &encode_json : &constraint::encode_utf8) {
    character_ = free_character_ = encode_(x_, CodePoints::all());
    if (!spelling_.excluded.empty())
      allowed_ = x_.complement(x_.cat({ExprId::any, x_.literal(spelling_.excluded), ExprId::any}));
    if (!spelling_.has_escapes) return;
    const auto hex = hex_digit();
    const ExprId surrogates = x_.cat({x_.literal("\\u"), letter("dD"), letter("89abAB"), hex, hex,
                                      x_.literal("\\u"), letter("dD"), letter("cdefCDEF"), hex, hex});
    const ExprId other = x_.alt(x_.cat({letter("0123456789abcefABCEF"), hex, hex, hex}),
                                x_.cat({letter("dD"), letter("01234567"), hex, hex}));
    free_character_ = x_.alt({character_, x_.cat(x_.literal("\\"), letter("\"\\/bfnrt")),
                              x_.cat(x_.literal("\\u"), other), surrogates});
  }

  [[nodiscard]] const Spelling& spelling() const noexcept { return spelling_; }
  /// A text as it stands between the quotes, each character in its one spelling.
  [[nodiscard]] std::string escaped(std::string_view text) const {
    return spelling_.has_escapes ? json_escaped(text) : std::string(text);
  }
  /// The spellings of a value that is neither array nor object, as a value; 2.0 also as 2. Raises
  /// ErrorCode::unsupported for a string that cannot be written.
  [[nodiscard]] std::vector<std::string> texts_of(const Json& value) const {
    if (value.is_string()) return quoted_texts(value.get_ref<const std::string&>());
    if (value.is_null()) return {spelling_.null};
    if (value.is_boolean()) return {value.get<bool>() ? spelling_.yes : spelling_.no};
    std::vector<std::string> out = {value.dump()};
    if (value.is_number_float() && out[0].ends_with(".0")) out.push_back(out[0].substr(0, out[0].size() - 2));
    return out;
  }
  /// The spellings of the name of a member. Raises as texts_of() does.
  [[nodiscard]] std::vector<std::string> names_of(std::string_view name) const {
    MICA_CHECK(has_name(name), unsupported, "schema: the name '", mica::escaped(name, 100),
               "' cannot be written in the notation of the model's calls");
    return spelling_.has_bare_names ? std::vector{std::string(name)} : quoted_texts(name);
  }
  /// Texts between quotes, as a value.
  [[nodiscard]] ExprId quoted(ExprId texts) {
    const ExprId quote = x_.literal(spelling_.quote);
    return x_.cat({quote, texts, quote});
  }
  /// Names of members, as they stand before a colon.
  [[nodiscard]] ExprId quoted_names(ExprId names) {
    if (spelling_.has_bare_names) return names;
    if (!spelling_.has_single_quotes) return quoted(names);
    const ExprId plain = x_.both(names, x_.repeat(x_.set(unquoted_bytes()), 0));
    return x_.alt(quoted(names), x_.cat({x_.literal("'"), plain, x_.literal("'")}));
  }
  /// Any text, each character in its one spelling.
  [[nodiscard]] ExprId any() { return x_.both(x_.repeat(character_, 0), allowed_); }
  /// Whether a name of a member can be written.
  [[nodiscard]] bool has_name(std::string_view name) const {
    const auto is_good = [](char c) { return is_bare_name_byte(static_cast<unsigned char>(c)); };
    const bool is_bare = !name.empty() && std::all_of(name.begin(), name.end(), is_good);
    return !is_excluded(escaped(name)) && (is_bare || !spelling_.has_bare_names);
  }
  /// Names that can be written.
  [[nodiscard]] ExprId any_name() {
    if (!spelling_.has_bare_names) return any();
    ByteSet bytes;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const auto c = static_cast<unsigned char>(byte);
      if (is_bare_name_byte(c)) bytes.insert(c);
    }
    return x_.both(any(), x_.repeat(x_.set(bytes), 1));
  }
  /// A text in which ECMA's search finds a match. Raises for a pattern that is not supported.
  [[nodiscard]] ExprId pattern(const std::string& pattern) {
    const auto known = patterns_.find(pattern);
    if (known != patterns_.end()) return known->second;
    const ExprId made = constraint::parse_regex(pattern, x_, {.encode = encode_, .whole = false});
    patterns_.emplace(pattern, made);
    return made;
  }
  /// A text of a known format; nothing where the format is unknown.
  [[nodiscard]] std::optional<ExprId> format(const std::string& name) {
    const auto known = formats_.find(name);
    if (known != formats_.end()) return known->second;
    const std::string pattern = format_pattern(name);
    if (pattern.empty()) return std::nullopt;
    const ExprId made = constraint::parse_regex(pattern, x_, {.encode = encode_, .whole = true});
    formats_.emplace(name, made);
    return made;
  }
  [[nodiscard]] bool matches(const std::string& pattern, std::string_view text) {
    return x_.accepts(this->pattern(pattern), escaped(text));
  }

  /// What a need allows between the quotes; may accept nothing.
  [[nodiscard]] ExprId string(const StringNeed& need) {
    if (need.length.empty()) return ExprId::none;
    const auto min =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(need.length.min, Expressions::unlimited - 1));
    const std::uint32_t max = need.length.max == no_max ? Expressions::unlimited
                                                        : static_cast<std::uint32_t>(std::min<std::uint64_t>(
                                                              need.length.max, Expressions::unlimited - 1));
    if (need.is_free()) return x_.both(x_.repeat(free_character_, min, max), allowed_);
    std::vector<ExprId> parts;
    bool bounded = false;  // whether a part excludes what is no text
    const auto add = [&](ExprId e, bool found) {
      parts.push_back(found ? e : x_.complement(e));
      bounded = bounded || found;
    };
    for (const Wanted& wanted : need.patterns) add(pattern(wanted.text), wanted.found);
    for (const Wanted& wanted : need.formats) add(*format(wanted.text), wanted.found);
    std::vector<constraint::Branch> excluded;
    for (const std::string& text : need.excluded) excluded.push_back({escaped(text)});
    if (!excluded.empty()) add(x_.table(std::move(excluded)), false);
    if (!bounded || min > 0 || max != Expressions::unlimited)
      parts.push_back(x_.repeat(character_, min, max));
    parts.push_back(allowed_);
    return x_.both(std::move(parts));
  }
  /// What a need allows, with its quotes; may accept nothing.
  [[nodiscard]] ExprId value(const StringNeed& need) {
    const ExprId out = quoted(string(need));
    if (!spelling_.has_single_quotes || !need.is_free() || need.length.min > 0 || need.length.max != no_max)
      return out;
    const ExprId plain =
        x_.both(constraint::encode_utf8(x_, CodePoints::all()), x_.repeat(x_.set(unquoted_bytes()), 1));
    const ExprId character = x_.alt(plain, x_.cat(x_.literal("\\"), letter("'\"\\nrt")));
    return x_.alt(out, x_.cat({x_.literal("'"), x_.repeat(character, 0), x_.literal("'")}));
  }
  /// Whether a text meets it.
  [[nodiscard]] bool meets(const StringNeed& need, const std::string& text, std::uint64_t length) {
    if (!need.length.contains(length)) return false;
    for (const Wanted& wanted : need.patterns) {
      if (matches(wanted.text, text) != wanted.found) return false;
    }
    for (const Wanted& wanted : need.formats) {
      if (x_.accepts(*format(wanted.text), escaped(text)) != wanted.found) return false;
    }
    return std::find(need.excluded.begin(), need.excluded.end(), text) == need.excluded.end();
  }

 private:
  [[nodiscard]] ExprId letter(std::string_view letters) {
    ByteSet set;
    for (const char c : letters) set.insert(static_cast<std::uint8_t>(c));
    return x_.set(set);
  }
  [[nodiscard]] ExprId hex_digit() { return letter("0123456789abcdefABCDEF"); }
  [[nodiscard]] bool is_excluded(std::string_view written) const {
    return !spelling_.excluded.empty() && written.find(spelling_.excluded) != std::string_view::npos;
  }
  [[nodiscard]] std::vector<std::string> quoted_texts(std::string_view text) const {
    const std::string inner = escaped(text);
    MICA_CHECK(!is_excluded(inner), unsupported, "schema: '", mica::escaped(text, 100),
               "' cannot be written in the notation of the model's calls: it contains '",
               mica::escaped(spelling_.excluded, 40), "'");
    std::vector<std::string> out = {spelling_.quote + inner + spelling_.quote};
    if (spelling_.has_single_quotes && inner == text && text.find('\'') == std::string_view::npos)
      out.push_back("'" + inner + "'");
    return out;
  }
  /// Bytes that stand as they are between ', those of UTF-8 among them.
  [[nodiscard]] static ByteSet unquoted_bytes() {
    ByteSet out(0x20, '\'' - 1);
    out |= ByteSet('\'' + 1, '\\' - 1);
    out |= ByteSet('\\' + 1, 0xFF);
    return out;
  }

  Expressions& x_;
  Spelling spelling_;
  ExprId (*encode_)(Expressions&, const CodePoints&);
  ExprId character_, free_character_;
  ExprId allowed_ = ExprId::any;  // texts without the excluded one
  std::unordered_map<std::string, ExprId> patterns_, formats_;
};

}  // namespace mica::schema
