// SPDX-License-Identifier: Apache-2.0
//
// Filters that make text or numbers out of one value: trim, upper, replace, indent, tojson, int, round ...
#pragma once

#include "mica_jinja/detail/arguments.hpp"
#include "mica_jinja/detail/arithmetic.hpp"
#include "mica_jinja/detail/attributes.hpp"
#include "mica_jinja/detail/callable.hpp"
#include "mica_jinja/detail/json_text.hpp"
#include "mica_jinja/detail/number_text.hpp"
#include "mica_jinja/detail/printing.hpp"
#include "mica_jinja/detail/string_methods.hpp"
#include "mica_jinja/detail/text_operations.hpp"
#include "mica_jinja/value.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::jinja::detail {

/// Filters print what is no string first; strings pass without a copy.
[[nodiscard]] inline Value printed(const Value& value, Engine& engine) {
  return value.is(Kind::string) ? value : Value(text_of(value, engine.meter()));
}

inline Value string_filter(Engine& engine, const Value& self, const Arguments& arguments) {
  arguments.expect_none("string");
  return printed(self, engine);
}

/// `safe` marks text for HTML; nothing is escaped here, so it only prints.
inline Value safe_filter(Engine& engine, const Value& self, const Arguments& arguments) {
  arguments.expect_none("safe");
  return printed(self, engine);
}

template <std::string (*change)(std::string_view)>
Value case_filter(Engine& engine, const Value& self, const Arguments& arguments) {
  return case_method<change>(engine, printed(self, engine), arguments);
}

/// The filter `title` takes more for the end of a word than the method does: white space, dashes and open
/// brackets.
[[nodiscard]] inline std::string title_by_words(std::string_view text) {
  bool inside = false;
  return map_code_points(text, [&inside](char32_t c) {
    const bool ends_word = is_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
    const char32_t out = inside ? lower(c) : upper(c);
    inside = !ends_word;
    return out;
  });
}

inline Value trim_filter(Engine& engine, const Value& self, const Arguments& arguments) {
  return strip_method<Side::both>(engine, printed(self, engine), arguments);
}

inline Value replace_filter(Engine& engine, const Value& self, const Arguments& arguments) {
  const auto [from, to, limit] = arguments.bind("replace", {"old", "new", "count"});
  if (from == nullptr || to == nullptr) fail("'replace' lacks an argument");
  const bool unlimited = limit == nullptr || limit->is(Kind::none);
  const Value text = printed(self, engine);
  const Value old = printed(*from, engine);
  const Value fresh = printed(*to, engine);
  return replaced(text.text(), old.text(), fresh.text(),
                  unlimited ? -1 : integer_argument(limit, -1, "replace"), engine.meter());
}

inline Value center_filter(Engine& engine, const Value& self, const Arguments& arguments) {
  const auto [width] = arguments.bind("center", {"width"});
  const Value text = printed(self, engine);
  return padded_text(text.text(), integer_argument(width, 80, "center"), " ", Side::both, engine.meter());
}

inline Value indent_filter(Engine& engine, const Value& self, const Arguments& arguments) {
  const auto [width, first, blank] = arguments.bind("indent", {"width", "first", "blank"});
  const Value by = width != nullptr && width->is(Kind::string)
                       ? *width
                       : repeated(" ", integer_argument(width, 4, "indent"), engine.meter());
  const std::string text = std::string(string_argument(&self, "indent")) + "\n";
  const bool blank_too = truth_argument(blank, false);
  std::string out;
  bool at_first = true;
  for (const Value& line : lines(text, false, engine.meter())) {
    if (!at_first) out += "\n";
    const bool indented = at_first ? truth_argument(first, false) : blank_too || !line.text().empty();
    engine.meter().bytes(by.text().size() + line.text().size());
    if (indented) out += by.text();
    out += line.text();
    engine.meter().check_length(out.size());
    at_first = false;
  }
  return out;
}

inline Value truncate_filter(Engine& engine, const Value& self, const Arguments& arguments) {
  const auto [length, kill, end, leeway] =
      arguments.bind("truncate", {"length", "killwords", "end", "leeway"});
  const std::string_view tail = end == nullptr ? "..." : string_argument(end, "truncate");
  const std::int64_t most = integer_argument(length, 255, "truncate");
  const auto tail_length = static_cast<std::int64_t>(count_code_points(tail));
  const std::int64_t spare = integer_argument(leeway, 5, "truncate");
  if (most < tail_length || spare < 0)
    fail("'truncate' was given a length below that of its end, or a negative leeway");
  const std::string_view text = string_argument(&self, "truncate");
  engine.meter().characters(text.size() + tail.size());
  const auto size = static_cast<std::int64_t>(count_code_points(text));
  if (size <= most || size - most <= spare) return self;
  std::string_view head = text.substr(0, offset_of(text, static_cast<std::size_t>(most - tail_length)));
  if (!truth_argument(kill, false)) head = head.substr(0, std::min(head.rfind(' '), head.size()));
  return std::string(head).append(tail);
}

inline Value wordcount_filter(Engine& engine, const Value& self, const Arguments& arguments) {
  arguments.expect_none("wordcount");
  const Value text = printed(self, engine);
  engine.meter().characters(text.text().size());
  std::int64_t count = 0;
  bool inside = false;
  each_code_point(text.text(), [&](CodePoint point, std::string_view) {
    const bool word = point.valid && (is_letter(point.value) || is_digit(point.value) || point.value == '_');
    count += word && !inside ? 1 : 0;
    inside = word;
  });
  return count;
}

inline Value escape_filter(Engine& engine, const Value& self, const Arguments& arguments) {
  arguments.expect_none("escape");
  const Value text = printed(self, engine);
  std::string out;
  for (const char c : text.text()) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&#34;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out.push_back(c);
    }
  }
  engine.meter().bytes(out.size());
  return out;
}

inline Value format_filter(Engine& engine, const Value& self, const Arguments& arguments) {
  if (!arguments.positional.empty() && !arguments.keyword.empty())
    fail("'format' takes values by order or by name, not both");
  const Value text = printed(self, engine);
  if (arguments.keyword.empty())
    return percent_format(text.text(), Value::tuple(arguments.positional), engine.meter());
  return percent_format(text.text(), Value::mapping(arguments.keyword), engine.meter());
}

/// Separators as json.dumps takes them: a pair of strings.
inline void set_separators(const Value& pair, JsonStyle& style) {
  if (!pair.is(Kind::sequence) || pair.items().size() != 2) fail("'tojson' wants a pair of separators");
  style.between_items = string_argument(&pair.items()[0], "tojson");
  style.after_key = string_argument(&pair.items()[1], "tojson");
}

inline Value tojson_filter(Engine& engine, const Value& self, const Arguments& arguments) {
  const auto [ascii, indent, separators, sorted] =
      arguments.bind("tojson", {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  style.ascii = truth_argument(ascii, false);
  style.sorted = truth_argument(sorted, false);
  if (indent != nullptr && !indent->is(Kind::none)) {
    const Value level = indent->is(Kind::string)
                            ? *indent
                            : repeated(" ", integer_argument(indent, 0, "tojson"), engine.meter());
    style.indent = level.text();
    style.between_items = ",";
  }
  if (separators != nullptr && !separators->is(Kind::none)) set_separators(*separators, style);
  JsonWriter writer(style, engine.meter());
  writer.write(self);
  return writer.take();
}

/// A float cut to an integer, if it has a place among them.
[[nodiscard]] inline Value truncated(double value, const Value& fallback) {
  constexpr double edge = 9223372036854775808.0;  // 2 to the 63
  return value >= -edge && value < edge ? Value(static_cast<std::int64_t>(value)) : fallback;
}

inline Value int_filter(Engine& engine, const Value& self, const Arguments& arguments) {
  const auto [fallback, base] = arguments.bind("int", {"default", "base"});
  const Value otherwise = fallback == nullptr ? Value(0) : *fallback;
  if (self.is(Kind::undefined)) refuse_undefined(self);
  if (is_whole(self)) return whole(self);
  if (self.is(Kind::real)) return truncated(self.real(), otherwise);
  if (!self.is(Kind::string)) return otherwise;
  engine.meter().characters(self.text().size());
  const std::string_view text = stripped(self.text(), Side::both);
  const std::int64_t radix = integer_argument(base, 10, "int");
  if (radix != 0 && (radix < 2 || radix > 36)) return otherwise;
  if (const auto number = parse_integer(text, static_cast<int>(radix))) return *number;
  const auto real = parse_real(text);
  return real ? truncated(*real, otherwise) : otherwise;
}

inline Value float_filter(Engine& engine, const Value& self, const Arguments& arguments) {
  const auto [fallback] = arguments.bind("float", {"default"});
  if (self.is(Kind::undefined)) refuse_undefined(self);
  if (self.is_number()) return number_of(self);
  if (self.is(Kind::string)) engine.meter().characters(self.text().size());
  const auto number = self.is(Kind::string) ? parse_real(stripped(self.text(), Side::both)) : std::nullopt;
  if (number) return *number;
  return fallback == nullptr ? Value(0.0) : *fallback;
}

inline Value abs_filter(Engine&, const Value& self, const Arguments& arguments) {
  arguments.expect_none("abs");
  if (!self.is_number()) fail("'abs' wants a number, not '", type_name(self), "'");
  if (self.is(Kind::real)) return std::fabs(self.real());
  return whole(self) < 0 ? with_sign(self, true) : Value(whole(self));
}

/// An integer rounded to a multiple of 10 to the -digits, halves to even; for digits below zero.
[[nodiscard]] inline std::int64_t rounded(std::int64_t value, std::int64_t digits) {
  if (digits < -19) return 0;  // every value is below half of 10 to the 20
  std::uint64_t unit = 1;
  for (; digits < 0; ++digits) unit *= 10;
  const std::uint64_t size = magnitude(value);
  const std::uint64_t rest = size % unit;
  const std::uint64_t below =
      size - rest;  // at most 2 to the 63, and the unit at most 10 to the 19: the sum fits
  const bool odd = (below / unit) % 2 != 0;
  const bool up = rest > unit - rest || (rest == unit - rest && odd);
  return with_magnitude(up ? below + unit : below, value < 0);
}

/// Rounds to decimals exactly as printing does, halves of the binary value to even.
[[nodiscard]] inline double rounded(double value, std::int64_t digits) {
  if (!std::isfinite(value) || digits > 300) return value;
  if (digits < -300) return 0.0;
  if (digits >= 0) return parse_real(fixed_text(value, static_cast<int>(digits))).value_or(value);
  const double scale = std::pow(10.0, static_cast<double>(-digits));
  return std::nearbyint(value / scale) * scale;
}

inline Value round_filter(Engine&, const Value& self, const Arguments& arguments) {
  const auto [precision, method] = arguments.bind("round", {"precision", "method"});
  const std::string_view how = method == nullptr ? "common" : string_argument(method, "round");
  const std::int64_t digits = integer_argument(precision, 0, "round");
  if (self.is(Kind::undefined)) refuse_undefined(self);
  if (!self.is_number()) fail("'round' wants a number, not '", type_name(self), "'");
  if (how == "common") {
    if (!is_whole(self)) return rounded(self.real(), digits);
    return digits >= 0 ? whole(self) : rounded(whole(self), digits);
  }
  if (how != "ceil" && how != "floor") fail("'round' knows the methods common, ceil and floor");
  const double scale = std::pow(10.0, static_cast<double>(digits));
  const double scaled = number_of(self) * scale;
  const double result = (how == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale;
  if (std::isfinite(number_of(self)) && !std::isfinite(result))
    fail("'round' was given a precision that no float has");
  return result;
}

inline constexpr NamedOperation text_filters[] = {
    {"abs", abs_filter},
    {"capitalize", case_filter<capitalized>},
    {"center", center_filter},
    {"e", escape_filter},
    {"escape", escape_filter},
    {"float", float_filter},
    {"forceescape", escape_filter},
    {"format", format_filter},
    {"indent", indent_filter},
    {"int", int_filter},
    {"lower", case_filter<lower>},
    {"replace", replace_filter},
    {"round", round_filter},
    {"safe", safe_filter},
    {"string", string_filter},
    {"title", case_filter<title_by_words>},
    {"tojson", tojson_filter},
    {"trim", trim_filter},
    {"truncate", truncate_filter},
    {"upper", case_filter<upper>},
    {"wordcount", wordcount_filter},
};

}  // namespace mica::jinja::detail
