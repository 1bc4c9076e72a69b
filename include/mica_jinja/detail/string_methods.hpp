// SPDX-License-Identifier: Apache-2.0
//
// The methods of strings: text.strip(), text.split(',') and so on, as Python's str has them.
#pragma once

#include "mica_jinja/detail/callable.hpp"
#include "mica_jinja/detail/iteration.hpp"
#include "mica_jinja/detail/text_operations.hpp"
#include "mica_jinja/detail/unicode.hpp"
#include "mica_jinja/value.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

namespace mica::jinja::detail {

[[nodiscard]] inline std::string_view string_argument(const Value* value, std::string_view callee) {
  if (value == nullptr) fail("'", callee, "' lacks an argument");
  if (!value->is(Kind::string)) fail("'", callee, "' wants a string, not '", type_name(*value), "'");
  return value->text();
}

[[nodiscard]] inline std::int64_t integer_argument(const Value* value, std::int64_t fallback,
                                                   std::string_view callee) {
  if (value == nullptr) return fallback;
  if (!is_whole(*value)) fail("'", callee, "' wants an integer, not '", type_name(*value), "'");
  return whole(*value);
}

[[nodiscard]] inline bool truth_argument(const Value* value, bool fallback) {
  return value == nullptr ? fallback : truth(*value);
}

template <Side side>
Value strip_method(Engine& engine, const Value& self, const Arguments& arguments) {
  const auto [set] = arguments.bind("strip", {"chars"});
  engine.meter().bytes(self.text().size());
  if (set == nullptr || set->is(Kind::none)) {
    const std::string_view rest = stripped(self.text(), side);
    engine.meter().characters(self.text().size() - rest.size());
    return rest;
  }
  return stripped(self.text(), side, string_argument(set, "strip"), engine.meter());
}

inline Value split_method(Engine& engine, const Value& self, const Arguments& arguments) {
  const auto [separator, limit] = arguments.bind("split", {"sep", "maxsplit"});
  const std::int64_t max = integer_argument(limit, -1, "split");
  Meter& meter = engine.meter();
  if (separator == nullptr || separator->is(Kind::none)) return Value::list(words(self.text(), max, meter));
  const std::string_view by = string_argument(separator, "split");
  if (by.empty()) fail("'split' was given an empty separator");
  return Value::list(split(self.text(), by, max, meter));
}

inline Value splitlines_method(Engine& engine, const Value& self, const Arguments& arguments) {
  const auto [keep] = arguments.bind("splitlines", {"keepends"});
  return Value::list(lines(self.text(), truth_argument(keep, false), engine.meter()));
}

/// Whether the text begins or ends with a string, or with one of several.
template <bool at_end>
Value affix_method(Engine& engine, const Value& self, const Arguments& arguments) {
  const std::string_view callee = at_end ? "endswith" : "startswith";
  const auto [affix] = arguments.bind(callee, {"affix"});
  if (affix == nullptr) fail("'", callee, "' lacks an argument");
  const auto matches = [&](const Value& wanted) {
    const std::string_view piece = string_argument(&wanted, callee);
    engine.meter().bytes(piece.size());
    return at_end ? self.text().ends_with(piece) : self.text().starts_with(piece);
  };
  if (!affix->is(Kind::sequence)) return matches(*affix);
  engine.meter().items(affix->items().size());
  return std::any_of(affix->items().begin(), affix->items().end(), matches);
}

template <std::string (*change)(std::string)>
Value case_method(Engine& engine, const Value& self, const Arguments&) {
  engine.meter().characters(self.text().size());
  return change(std::string(self.text()));
}

inline Value replace_method(Engine& engine, const Value& self, const Arguments& arguments) {
  const auto [from, to, limit] = arguments.bind("replace", {"old", "new", "count"});
  return replaced(self.text(), string_argument(from, "replace"), string_argument(to, "replace"),
                  integer_argument(limit, -1, "replace"), engine.meter());
}

/// Filters print what is no string first; strings pass without a copy.
[[nodiscard]] inline Value printed(const Value& value, Engine& engine) {
  return value.is(Kind::string) ? value : Value(text_of(value, engine.meter()));
}

/// Items with a text between them; what is no string is printed, or refused.
[[nodiscard]] inline std::string joined(Engine& engine, std::string_view between, const Value& items,
                                        bool prints) {
  const Value row = items_of(items, engine.meter());
  std::string out;
  for (const Value& item : row.items()) {
    const Value part = prints ? printed(item, engine) : item;
    engine.meter().bytes(between.size() + string_argument(&part, "join").size());
    if (&item != row.items().data()) out.append(between);
    out.append(part.text());
    engine.meter().check_length(out.size());
  }
  return out;
}

inline Value join_method(Engine& engine, const Value& self, const Arguments& arguments) {
  const auto [row] = arguments.bind("join", {"iterable"});
  if (row == nullptr) fail("'join' lacks an argument");
  return joined(engine, self.text(), *row, false);
}

inline Value format_method(Engine& engine, const Value& self, const Arguments& arguments) {
  return brace_format(self.text(), arguments, engine.meter());
}

/// Limit: other digits than 0 to 9 are none.
inline Value isdigit_method(Engine& engine, const Value& self, const Arguments&) {
  engine.meter().bytes(self.text().size());
  return !self.text().empty() && self.text().find_first_not_of("0123456789") == std::string_view::npos;
}

inline constexpr NamedOperation string_methods[] = {
    {"capitalize", case_method<capitalized>, no_arguments},
    {"endswith", affix_method<true>},
    {"format", format_method},
    {"isdigit", isdigit_method, no_arguments},
    {"join", join_method},
    {"lower", case_method<lower>, no_arguments},
    {"lstrip", strip_method<Side::left>},
    {"replace", replace_method},
    {"rstrip", strip_method<Side::right>},
    {"split", split_method},
    {"splitlines", splitlines_method},
    {"startswith", affix_method<false>},
    {"strip", strip_method<Side::both>},
    {"title", case_method<titled<is_no_letter>>, no_arguments},
    {"upper", case_method<upper>, no_arguments},
};

}  // namespace mica::jinja::detail
