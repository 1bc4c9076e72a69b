// SPDX-License-Identifier: Apache-2.0
//
// Filters over lists and mappings: join, map, select, sort, dictsort, first, length, default ...
// Where Python has a generator the result is computed at once, but behaves as one: it is true, has no length
// and no places, and gives its items once.
#pragma once

#include "mica_jinja/detail/callable.hpp"
#include "mica_jinja/detail/comparison.hpp"
#include "mica_jinja/detail/iteration.hpp"
#include "mica_jinja/detail/lookup.hpp"
#include "mica_jinja/detail/text_filters.hpp"
#include "mica_jinja/detail/unicode.hpp"
#include "mica_jinja/value.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::jinja::detail {

[[nodiscard]] inline Value generator(std::vector<Value> items) {
  return make_sequence(Form::generator, std::move(items));
}

/// What `attribute='a.b'` reads from an item; without one, the item. Limit: names, no places.
[[nodiscard]] inline Value attribute_at(Value item, const Value* attribute, Meter& meter) {
  if (attribute == nullptr || attribute->is(Kind::none)) return item;
  for (std::string_view rest = string_argument(attribute, "attribute");;) {
    const std::size_t dot = std::min(rest.find('.'), rest.size());
    meter.items(4);
    item = subscript_of(item, rest.substr(0, dot), meter);
    if (dot == rest.size()) return item;
    rest.remove_prefix(dot + 1);
  }
}

/// Strings in lower case when case is not to count, anything else as it is.
[[nodiscard]] inline Value without_case(const Value& value, bool case_sensitive, Meter& meter) {
  if (case_sensitive || !value.is(Kind::string)) return value;
  meter.bytes(value.text().size());
  return lower(std::string(value.text()));
}

inline Value length_filter(Engine& engine, const Value& self, const Arguments&) {
  const auto number = [](std::size_t n) { return Value(static_cast<std::int64_t>(n)); };
  switch (self.kind()) {
    case Kind::undefined:
      return 0;
    case Kind::string:
      engine.meter().characters(self.text().size());
      return number(count_code_points(self.text()));
    case Kind::mapping:
      return number(self.entries().size());
    case Kind::loop:
      return number(self.as<Loop>().row.items().size());
    case Kind::sequence:
      if (self.as<Sequence>().form != Form::generator) return number(self.items().size());
      [[fallthrough]];
    default:
      fail("'", type_name(self), "' has no length");
  }
}

inline Value default_filter(Engine&, const Value& self, const Arguments& arguments) {
  const auto [fallback, boolean] = arguments.bind("default", {"default_value", "boolean"});
  const bool missing = self.is(Kind::undefined) || (truth_argument(boolean, false) && !truth(self));
  if (!missing) return self;
  return fallback == nullptr ? Value("") : *fallback;
}

template <bool last>
Value end_filter(Engine& engine, const Value& self, const Arguments&) {
  if (last && self.is(Kind::sequence) && self.as<Sequence>().form == Form::generator)
    fail("a generator has no last item");
  const Value row = items_of(self, engine.meter());
  if (!row.items().empty()) return last ? row.items().back() : row.items().front();
  return Value::undefined(join("there is no ", last ? "last" : "first", " item, the list is empty"));
}

inline Value list_filter(Engine& engine, const Value& self, const Arguments&) {
  const Value row = items_of(self, engine.meter());
  engine.meter().items(row.items().size());
  return Value::list(row.items());
}

inline Value items_filter(Engine& engine, const Value& self, const Arguments&) {
  if (self.is(Kind::undefined)) return generator({});
  if (!self.is(Kind::mapping)) fail("'items' wants a mapping, not '", type_name(self), "'");
  return generator(pairs(self, engine.meter()));
}

inline Value join_filter(Engine& engine, const Value& self, const Arguments& arguments) {
  const auto [separator] = arguments.bind("join", {"d"});
  const Value between = separator == nullptr ? Value("") : printed(*separator, engine);
  return joined(engine, between.text(), self, true);
}

/// Arguments behind the first `skipped`, for the filter or test that is named by one of them.
[[nodiscard]] inline Arguments rest_of(const Arguments& arguments, std::size_t skipped) {
  Arguments rest;
  rest.keyword = arguments.keyword;
  for (std::size_t i = skipped; i < arguments.positional.size(); ++i)
    rest.positional.push_back(arguments.positional[i]);
  return rest;
}

inline Value map_filter(Engine& engine, const Value& self, const Arguments& arguments) {
  const bool by_attribute = arguments.positional.empty() && arguments.find("attribute") != nullptr;
  if (!by_attribute && arguments.positional.empty())
    fail("'map' wants the name of a filter or attribute='name'");
  if (!truth(self)) return generator({});
  const Arguments rest = rest_of(arguments, 1);
  const Value row = items_of(self, engine.meter());
  engine.meter().items(row.items().size());
  std::vector<Value> out;
  for (const Value& item : row.items()) {
    out.push_back(by_attribute ? attribute_at(item, arguments.find("attribute"), engine.meter())
                               : engine.filter(string_argument(&arguments.positional[0], "map"), item, rest));
  }
  return generator(std::move(out));
}

/// select, reject, selectattr and rejectattr: which items to keep, by a test on the item or on one of its
/// attributes.
template <bool by_attribute, bool keep>
Value select_filter(Engine& engine, const Value& self, const Arguments& arguments) {
  constexpr std::size_t skipped = by_attribute ? 1 : 0;
  if (arguments.positional.size() < skipped)
    fail("'selectattr' and 'rejectattr' want the name of an attribute");
  if (!truth(self)) return generator({});
  const Value* const attribute = by_attribute ? &arguments.positional[0] : nullptr;
  const bool has_test = arguments.positional.size() > skipped;
  const Arguments rest = rest_of(arguments, skipped + 1);
  const Value row = items_of(self, engine.meter());
  engine.meter().items(row.items().size());
  std::vector<Value> out;
  for (const Value& item : row.items()) {
    const Value seen = attribute_at(item, attribute, engine.meter());
    const bool passes =
        has_test ? engine.test(string_argument(&arguments.positional[skipped], "select"), seen, rest)
                 : truth(seen);
    if (passes == keep) out.push_back(item);
  }
  return generator(std::move(out));
}

inline Value sort_filter(Engine& engine, const Value& self, const Arguments& arguments) {
  const auto [reverse, sensitive, attribute] =
      arguments.bind("sort", {"reverse", "case_sensitive", "attribute"});
  const bool exact = truth_argument(sensitive, false);
  const Value row = items_of(self, engine.meter());
  engine.meter().items(2 * row.items().size());
  std::vector<Keyed> rows;
  for (const Value& item : row.items()) {
    const Value key = attribute_at(item, attribute, engine.meter());
    rows.push_back({without_case(key, exact, engine.meter()), item});
  }
  return Value::list(sorted_values(std::move(rows), truth_argument(reverse, false), engine.meter()));
}

/// Pairs in the order of their keys, without regard to case.
inline Value dictsort_filter(Engine& engine, const Value& self, const Arguments&) {
  if (self.is(Kind::undefined)) refuse_undefined(self);
  if (!self.is(Kind::mapping)) fail("'dictsort' wants a mapping, not '", type_name(self), "'");
  std::vector<Keyed> rows;
  for (Value& pair : pairs(self, engine.meter())) {
    rows.push_back({without_case(pair.items()[0], false, engine.meter()), std::move(pair)});
  }
  return Value::list(sorted_values(std::move(rows), false, engine.meter()));
}

inline Value unique_filter(Engine& engine, const Value& self, const Arguments&) {
  const Value row = items_of(self, engine.meter());
  engine.meter().entries(row.items().size());
  Table seen;
  std::vector<Value> out;
  for (const Value& item : row.items()) {
    Value key = without_case(item, false, engine.meter());
    if (!hashable(key)) fail("'unique' does not take '", type_name(key), "'");
    if (seen.find(key) != nullptr) continue;
    seen.set(std::move(key), nullptr);
    out.push_back(item);
  }
  return generator(std::move(out));
}

template <bool largest>
Value extreme_filter(Engine& engine, const Value& self, const Arguments&) {
  const Value row = items_of(self, engine.meter());
  if (row.items().empty()) return Value::undefined("there is no smallest or largest item, the list is empty");
  const auto before = [&engine](const Value& first, const Value& second) {
    const Value a = without_case(first, false, engine.meter());
    const Value b = without_case(second, false, engine.meter());
    return largest ? less(b, a, engine.meter()) : less(a, b, engine.meter());
  };
  return *std::min_element(row.items().begin(), row.items().end(), before);
}

inline constexpr NamedOperation row_filters[] = {
    {"count", length_filter, no_arguments},
    {"d", default_filter},
    {"default", default_filter},
    {"dictsort", dictsort_filter, no_arguments},
    {"first", end_filter<false>, no_arguments},
    {"items", items_filter, no_arguments},
    {"join", join_filter},
    {"last", end_filter<true>, no_arguments},
    {"length", length_filter, no_arguments},
    {"list", list_filter, no_arguments},
    {"map", map_filter},
    {"max", extreme_filter<true>, no_arguments},
    {"min", extreme_filter<false>, no_arguments},
    {"reject", select_filter<false, false>},
    {"rejectattr", select_filter<true, false>},
    {"select", select_filter<false, true>},
    {"selectattr", select_filter<true, true>},
    {"sort", sort_filter},
    {"unique", unique_filter, no_arguments},
};

}  // namespace mica::jinja::detail
