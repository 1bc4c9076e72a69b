// SPDX-License-Identifier: Apache-2.0
//
// Expressions of strings as JSON writes them. Where a schema says more about a string than its length, each
// character has one spelling: as it is, or with the shortest escape if JSON needs one. A string that may be
// anything may have every escape.
#pragma once

#include "mica/constraint/code_points.hpp"
#include "mica/constraint/expressions.hpp"
#include "mica/constraint/regex.hpp"
#include "mica_tools/schema/case.hpp"
#include "mica_tools/schema/formats.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
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

/// Makes expressions of what stands between quotes.
class Strings {
 public:
  explicit Strings(Expressions& expressions) : x_(expressions) {
    character_ = encode_json(x_, CodePoints::all());
    const auto hex = hex_digit();
    CodePoints plain = CodePoints::all();
    const ExprId surrogates = x_.cat({x_.literal("\\u"), letter("dD"), letter("89abAB"), hex, hex,
                                      x_.literal("\\u"), letter("dD"), letter("cdefCDEF"), hex, hex});
    const ExprId other = x_.alt(x_.cat({letter("0123456789abcefABCEF"), hex, hex, hex}),
                                x_.cat({letter("dD"), letter("01234567"), hex, hex}));
    free_character_ = x_.alt({character_, x_.cat(x_.literal("\\"), letter("\"\\/bfnrt")),
                              x_.cat(x_.literal("\\u"), other), surrogates});
  }

  /// Any text, each character in its one spelling.
  [[nodiscard]] ExprId any() { return x_.repeat(character_, 0); }
  /// A text in which ECMA's search finds a match. Raises for a pattern that is not supported.
  [[nodiscard]] ExprId pattern(const std::string& pattern) {
    const auto known = patterns_.find(pattern);
    if (known != patterns_.end()) return known->second;
    const ExprId made = constraint::parse_regex(pattern, x_, {.encode = &encode_json, .whole = false});
    patterns_.emplace(pattern, made);
    return made;
  }
  /// A text of a known format; nothing where the format is unknown.
  [[nodiscard]] std::optional<ExprId> format(const std::string& name) {
    const auto known = formats_.find(name);
    if (known != formats_.end()) return known->second;
    const std::string pattern = format_pattern(name);
    if (pattern.empty()) return std::nullopt;
    const ExprId made = constraint::parse_regex(pattern, x_, {.encode = &encode_json, .whole = true});
    formats_.emplace(name, made);
    return made;
  }
  [[nodiscard]] bool matches(const std::string& pattern, std::string_view text) {
    return x_.accepts(this->pattern(pattern), json_escaped(text));
  }

  /// What a need allows between the quotes; may accept nothing.
  [[nodiscard]] ExprId string(const StringNeed& need) {
    if (need.length.empty()) return ExprId::none;
    const auto min =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(need.length.min, Expressions::unlimited - 1));
    const std::uint32_t max = need.length.max == no_max ? Expressions::unlimited
                                                        : static_cast<std::uint32_t>(std::min<std::uint64_t>(
                                                              need.length.max, Expressions::unlimited - 1));
    if (need.is_free()) return x_.repeat(free_character_, min, max);
    std::vector<ExprId> parts;
    bool bounded = false;  // whether a part excludes what is no text
    const auto add = [&](ExprId e, bool found) {
      parts.push_back(found ? e : x_.complement(e));
      bounded = bounded || found;
    };
    for (const Wanted& wanted : need.patterns) add(pattern(wanted.text), wanted.found);
    for (const Wanted& wanted : need.formats) add(*format(wanted.text), wanted.found);
    std::vector<constraint::Branch> excluded;
    for (const std::string& text : need.excluded) excluded.push_back({json_escaped(text)});
    if (!excluded.empty()) add(x_.table(std::move(excluded)), false);
    if (!bounded || min > 0 || max != Expressions::unlimited)
      parts.push_back(x_.repeat(character_, min, max));
    return x_.both(std::move(parts));
  }
  /// Whether a text meets it.
  [[nodiscard]] bool meets(const StringNeed& need, const std::string& text, std::uint64_t length) {
    if (!need.length.contains(length)) return false;
    for (const Wanted& wanted : need.patterns) {
      if (matches(wanted.text, text) != wanted.found) return false;
    }
    for (const Wanted& wanted : need.formats) {
      if (x_.accepts(*format(wanted.text), json_escaped(text)) != wanted.found) return false;
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

  Expressions& x_;
  ExprId character_, free_character_;
  std::unordered_map<std::string, ExprId> patterns_, formats_;
};

}  // namespace mica::schema
