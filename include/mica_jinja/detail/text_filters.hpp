// SPDX-License-Identifier: Apache-2.0
//
// Filters that make text or numbers out of one value: trim, upper, replace, indent, tojson, int, round ...
#pragma once

#include "mica_jinja/detail/arithmetic.hpp"
#include "mica_jinja/detail/callable.hpp"
#include "mica_jinja/detail/json_text.hpp"
#include "mica_jinja/detail/printing.hpp"
#include "mica_jinja/detail/string_methods.hpp"
#include "mica_jinja/detail/text_operations.hpp"
#include "mica_jinja/value.hpp"

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace mica::jinja::detail {

/// `string`, and `safe`, which marks text for HTML; nothing is escaped here, so it only prints.
inline Value string_filter(Engine& engine, const Value& self, const Arguments&) {
  return printed(self, engine);
}

/// A method of strings as a filter, which prints what is no string first.
template <Operation method>
Value on_text(Engine& engine, const Value& self, const Arguments& arguments) {
  return method(engine, printed(self, engine), arguments);
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

/// Limit: the indent is a number of spaces, and blank lines get none.
inline Value indent_filter(Engine& engine, const Value& self, const Arguments& arguments) {
  const auto [width, first] = arguments.bind("indent", {"width", "first"});
  const std::string by = repeated(" ", integer_argument(width, 4, "indent"), engine.meter());
  const std::string text = std::string(string_argument(&self, "indent")) + "\n";
  std::string out = truth_argument(first, false) ? by : "";
  bool at_first = true;
  for (const Value& line : lines(text, false, engine.meter())) {
    if (!std::exchange(at_first, false)) out += line.text().empty() ? "\n" : "\n" + by;
    engine.meter().bytes(by.size() + line.text().size());
    out += line.text();
    engine.meter().check_length(out.size());
  }
  return out;
}

inline Value format_filter(Engine& engine, const Value& self, const Arguments& arguments) {
  if (!arguments.keyword.empty()) fail("'format' takes no names");
  const Value text = printed(self, engine);
  return percent_format(text.text(), arguments.positional, engine.meter());
}

/// Separators as json.dumps takes them: a pair of strings.
inline void set_separators(const Value& pair, JsonStyle& style) {
  if (!pair.is(Kind::sequence) || pair.items().size() != 2) fail("'tojson' wants a pair of separators");
  style.between_items = string_argument(&pair.items()[0], "tojson");
  style.after_key = string_argument(&pair.items()[1], "tojson");
}

inline Value tojson_filter(Engine& engine, const Value& self, const Arguments& arguments) {
  const auto [ascii, indent, separators] = arguments.bind("tojson", {"ensure_ascii", "indent", "separators"});
  JsonStyle style;
  style.ascii = truth_argument(ascii, false);
  if (indent != nullptr && !indent->is(Kind::none)) {
    style.indent = repeated(" ", integer_argument(indent, 0, "tojson"), engine.meter());
    style.between_items = ",";
  }
  if (separators != nullptr && !separators->is(Kind::none)) set_separators(*separators, style);
  JsonWriter writer(style, engine.meter());
  writer.write(self);
  return writer.take();
}

inline Value int_filter(Engine& engine, const Value& self, const Arguments& arguments) {
  const auto [fallback] = arguments.bind("int", {"default"});
  const Value otherwise = fallback == nullptr ? Value(0) : *fallback;
  if (self.is(Kind::undefined)) refuse_undefined(self);
  if (is_whole(self)) return whole(self);
  std::optional<double> real;
  if (self.is(Kind::real)) real = self.real();
  if (self.is(Kind::string)) {
    engine.meter().characters(self.text().size());
    const std::string_view text = stripped(self.text(), Side::both);
    if (const auto number = parse_integer(text)) return *number;
    real = parse_real(text);
  }
  const auto number = real ? truncated(*real) : std::nullopt;
  return number ? Value(*number) : otherwise;
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

/// Rounds to decimals exactly as printing does, halves of the binary value to even.
inline Value round_filter(Engine&, const Value& self, const Arguments& arguments) {
  const auto [precision] = arguments.bind("round", {"precision"});
  const std::int64_t digits = integer_argument(precision, 0, "round");
  if (self.is(Kind::undefined)) refuse_undefined(self);
  if (!self.is_number()) fail("'round' wants a number, not '", type_name(self), "'");
  if (digits < 0) fail("'round' wants a number of decimals that is not negative");
  if (is_whole(self)) return whole(self);
  if (!std::isfinite(self.real()) || digits > 300) return self;
  return parse_real(fixed_text(self.real(), static_cast<int>(digits))).value_or(self.real());
}

inline constexpr NamedOperation text_filters[] = {
    {"capitalize", on_text<case_method<capitalized>>, no_arguments},
    {"float", float_filter},
    {"format", format_filter},
    {"indent", indent_filter},
    {"int", int_filter},
    {"lower", on_text<case_method<lower>>, no_arguments},
    {"replace", replace_filter},
    {"round", round_filter},
    {"safe", string_filter, no_arguments},
    {"string", string_filter, no_arguments},
    {"title", on_text<case_method<titled<is_gap>>>, no_arguments},
    {"tojson", tojson_filter},
    {"trim", on_text<strip_method<Side::both>>},
    {"upper", on_text<case_method<upper>>, no_arguments},
};

}  // namespace mica::jinja::detail
