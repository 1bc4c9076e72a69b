// SPDX-License-Identifier: Apache-2.0
//
// The methods of strings: text.strip(), text.split(',') and so on, as Python's str has them.
#pragma once

#include "mica_jinja/detail/arguments.hpp"
#include "mica_jinja/detail/callable.hpp"
#include "mica_jinja/detail/format.hpp"
#include "mica_jinja/detail/iteration.hpp"
#include "mica_jinja/detail/lookup.hpp"
#include "mica_jinja/detail/text_operations.hpp"
#include "mica_jinja/detail/unicode.hpp"
#include "mica_jinja/value.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

template <bool from_back>
Value split_method(Engine& engine, const Value& self, const Arguments& arguments) {
  const auto [separator, limit] = arguments.bind("split", {"sep", "maxsplit"});
  const std::int64_t most = integer_argument(limit, -1, "split");
  Meter& meter = engine.meter();
  if (separator == nullptr || separator->is(Kind::none)) {
    return Value::list(from_back ? words_back(self.text(), most, meter) : words(self.text(), most, meter));
  }
  const std::string_view by = string_argument(separator, "split");
  if (by.empty()) fail("'split' was given an empty separator");
  return Value::list(from_back ? split_back(self.text(), by, most, meter)
                               : split(self.text(), by, most, meter));
}

template <bool from_back>
Value partition_method(Engine& engine, const Value& self, const Arguments& arguments) {
  const auto [separator] = arguments.bind("partition", {"sep"});
  const std::string_view by = string_argument(separator, "partition");
  if (by.empty()) fail("'partition' was given an empty separator");
  const std::string_view text = self.text();
  engine.meter().bytes(text.size());
  engine.meter().search(text.size(), by.size());
  const std::size_t at = from_back ? text.rfind(by) : text.find(by);
  if (at == std::string_view::npos) {
    return from_back ? Value::tuple({"", "", self}) : Value::tuple({self, "", ""});
  }
  return Value::tuple({text.substr(0, at), by, text.substr(at + by.size())});
}

inline Value splitlines_method(Engine& engine, const Value& self, const Arguments& arguments) {
  const auto [keep] = arguments.bind("splitlines", {"keepends"});
  return Value::list(lines(self.text(), truth_argument(keep, false), engine.meter()));
}

/// Whether the text, from `start` to `end` if they are given, begins or ends with one of several strings.
template <bool at_end>
Value affix_method(Engine& engine, const Value& self, const Arguments& arguments) {
  const std::string_view callee = at_end ? "endswith" : "startswith";
  const auto [affix, start, end] = arguments.bind(callee, {"affix", "start", "end"});
  if (affix == nullptr) fail("'", callee, "' lacks an argument");
  std::string part;
  std::string_view text = self.text();
  if (start != nullptr || end != nullptr) {
    part = text_slice(text, start == nullptr ? Value() : *start, end == nullptr ? Value() : *end, Value(),
                      engine.meter());
    text = part;
  }
  const auto matches = [&](const Value& wanted) {
    const std::string_view piece = string_argument(&wanted, callee);
    engine.meter().bytes(piece.size());
    return at_end ? text.ends_with(piece) : text.starts_with(piece);
  };
  if (!affix->is(Kind::sequence)) return matches(*affix);
  engine.meter().items(affix->items().size());
  for (const Value& wanted : affix->items()) {
    if (matches(wanted)) return true;
  }
  return false;
}

template <bool at_end>
Value remove_affix_method(Engine& engine, const Value& self, const Arguments& arguments) {
  const auto [affix] = arguments.bind("removeprefix", {"affix"});
  const std::string_view piece = string_argument(affix, at_end ? "removesuffix" : "removeprefix");
  std::string_view text = self.text();
  engine.meter().bytes(text.size());
  if (at_end && text.ends_with(piece)) text.remove_suffix(piece.size());
  if (!at_end && text.starts_with(piece)) text.remove_prefix(piece.size());
  return text;
}

template <std::string (*change)(std::string_view)>
Value case_method(Engine& engine, const Value& self, const Arguments& arguments) {
  arguments.expect_none("upper, lower, title, capitalize");
  engine.meter().characters(self.text().size());
  return change(self.text());
}

/// A capital after everything that is no letter, as str.title() has it.
[[nodiscard]] inline std::string titled(std::string_view text) {
  bool inside = false;
  return map_code_points(text, [&inside](char32_t c) {
    const char32_t out = inside ? lower(c) : upper(c);
    inside = is_cased(c);
    return out;
  });
}

[[nodiscard]] inline std::string swapped_case(std::string_view text) {
  return map_code_points(text, [](char32_t c) { return lower(c) != c ? lower(c) : upper(c); });
}

inline Value replace_method(Engine& engine, const Value& self, const Arguments& arguments) {
  const auto [from, to, limit] = arguments.bind("replace", {"old", "new", "count"});
  return replaced(self.text(), string_argument(from, "replace"), string_argument(to, "replace"),
                  integer_argument(limit, -1, "replace"), engine.meter());
}

/// str.join, and the filter of that name: every item must be a string here.
inline Value join_method(Engine& engine, const Value& self, const Arguments& arguments) {
  const auto [row] = arguments.bind("join", {"iterable"});
  if (row == nullptr) fail("'join' lacks an argument");
  const Items items = items_of(*row, engine.meter());
  std::string out;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const Value item = items[i];
    engine.meter().bytes(self.text().size() + string_argument(&item, "join").size());
    if (i > 0) out.append(self.text());
    out.append(item.text());
    engine.meter().check_length(out.size());
  }
  return out;
}

template <bool from_back, bool must_be_there>
Value find_method(Engine& engine, const Value& self, const Arguments& arguments) {
  const auto [part, start, end] = arguments.bind("find", {"sub", "start", "end"});
  const std::string_view wanted = string_argument(part, "find");
  engine.meter().characters(self.text().size());
  engine.meter().search(self.text().size(), wanted.size());
  const std::size_t size = count_code_points(self.text());
  const SliceBounds bounds =
      slice_bounds(start == nullptr ? Value() : *start, end == nullptr ? Value() : *end, Value(), size);
  const std::size_t skipped = bounds.count == 0 ? 0 : bounds.at(0);
  std::string_view text = self.text();
  text.remove_prefix(offset_of(text, skipped));
  text = text.substr(0, offset_of(text, bounds.count));
  const std::int64_t index = index_in(text, from_back ? text.rfind(wanted) : text.find(wanted));
  if (must_be_there && index < 0) fail("'index' did not find the text");
  return index < 0 ? index : index + static_cast<std::int64_t>(skipped);
}

inline Value count_method(Engine& engine, const Value& self, const Arguments& arguments) {
  const auto [part] = arguments.bind("count", {"sub"});
  const std::string_view wanted = string_argument(part, "count");
  engine.meter().characters(self.text().size());
  engine.meter().search(self.text().size(), wanted.size());
  return count_in(self.text(), wanted);
}

inline Value format_method(Engine& engine, const Value& self, const Arguments& arguments) {
  return brace_format(self.text(), arguments, engine.meter());
}

template <Side side>
Value pad_method(Engine& engine, const Value& self, const Arguments& arguments) {
  const auto [width, fill] = arguments.bind("center, ljust, rjust", {"width", "fillchar"});
  const std::string_view with = fill == nullptr ? " " : string_argument(fill, "center, ljust, rjust");
  if (with.empty() || decode(with, 0).size != with.size())
    fail("the text to fill with must be one character");
  return padded_text(self.text(), integer_argument(width, 0, "width"), with, side, engine.meter());
}

inline Value zfill_method(Engine& engine, const Value& self, const Arguments& arguments) {
  const auto [width] = arguments.bind("zfill", {"width"});
  std::string_view text = self.text();
  const bool has_sign = text.starts_with('-') || text.starts_with('+');
  const std::string sign(text.substr(0, has_sign ? 1 : 0));
  text.remove_prefix(sign.size());
  const std::int64_t rest = integer_argument(width, 0, "zfill");
  return sign + padded_text(text, has_sign && rest > 0 ? rest - 1 : rest, "0", Side::right, engine.meter());
}

/// isdigit() and its kind: true when there are code points and `holds` for each.
template <bool (*holds)(char32_t)>
Value all_method(Engine& engine, const Value& self, const Arguments& arguments) {
  arguments.expect_none("isalpha, isdigit, isspace ...");
  engine.meter().characters(self.text().size());
  bool all = !self.text().empty();
  each_code_point(self.text(),
                  [&](CodePoint point, std::string_view) { all = all && point.valid && holds(point.value); });
  return all;
}

[[nodiscard]] inline bool is_letter_or_digit(char32_t c) { return is_letter(c) || is_digit(c); }

/// Whether there are letters with case and all of them have this one.
[[nodiscard]] inline bool has_case(std::string_view text, bool capitals) {
  bool some = false;
  bool all = true;
  each_code_point(text, [&](CodePoint point, std::string_view) {
    if (!point.valid || !is_cased(point.value)) return;
    some = true;
    all = all && (capitals ? upper(point.value) : lower(point.value)) == point.value;
  });
  return some && all;
}

template <bool capitals>
Value has_case_method(Engine& engine, const Value& self, const Arguments& arguments) {
  arguments.expect_none("islower, isupper");
  engine.meter().characters(self.text().size());
  return has_case(self.text(), capitals);
}

inline constexpr NamedOperation string_methods[] = {
    {"capitalize", case_method<capitalized>},
    {"casefold", case_method<lower>},
    {"center", pad_method<Side::both>},
    {"count", count_method},
    {"endswith", affix_method<true>},
    {"find", find_method<false, false>},
    {"format", format_method},
    {"index", find_method<false, true>},
    {"isalnum", all_method<is_letter_or_digit>},
    {"isalpha", all_method<is_letter>},
    {"isdecimal", all_method<is_digit>},
    {"isdigit", all_method<is_digit>},
    {"islower", has_case_method<false>},
    {"isnumeric", all_method<is_digit>},
    {"isspace", all_method<is_space>},
    {"isupper", has_case_method<true>},
    {"join", join_method},
    {"ljust", pad_method<Side::left>},
    {"lower", case_method<lower>},
    {"lstrip", strip_method<Side::left>},
    {"partition", partition_method<false>},
    {"removeprefix", remove_affix_method<false>},
    {"removesuffix", remove_affix_method<true>},
    {"replace", replace_method},
    {"rfind", find_method<true, false>},
    {"rindex", find_method<true, true>},
    {"rjust", pad_method<Side::right>},
    {"rpartition", partition_method<true>},
    {"rsplit", split_method<true>},
    {"rstrip", strip_method<Side::right>},
    {"split", split_method<false>},
    {"splitlines", splitlines_method},
    {"startswith", affix_method<false>},
    {"strip", strip_method<Side::both>},
    {"swapcase", case_method<swapped_case>},
    {"title", case_method<titled>},
    {"upper", case_method<upper>},
    {"zfill", zfill_method},
};

}  // namespace mica::jinja::detail
