// SPDX-License-Identifier: Apache-2.0
//
// Filters over lists and mappings: join, map, select, sort, dictsort, first, length, default ...
// Where Python would hand out a generator the result is computed at once but keeps a generator's manners: it
// is true, has no length and no places, and gives its items once.
#pragma once

#include "mica_jinja/detail/arguments.hpp"
#include "mica_jinja/detail/arithmetic.hpp"
#include "mica_jinja/detail/attributes.hpp"
#include "mica_jinja/detail/callable.hpp"
#include "mica_jinja/detail/comparison.hpp"
#include "mica_jinja/detail/iteration.hpp"
#include "mica_jinja/detail/printing.hpp"
#include "mica_jinja/detail/text_filters.hpp"
#include "mica_jinja/detail/unicode.hpp"
#include "mica_jinja/value.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::jinja::detail {

[[nodiscard]] inline Value generator(std::vector<Value> items) {
  return make_sequence(Form::generator, std::move(items));
}

/// What `attribute='a.b.0'` reads from an item.
class AttributePath {
 public:
  AttributePath(const Value* attribute, Meter& meter, const Value* fallback = nullptr) : fallback_(fallback) {
    if (attribute == nullptr || attribute->is(Kind::none)) return;
    if (!attribute->is(Kind::string)) {
      parts_.push_back(*attribute);
      return;
    }
    meter.characters(attribute->text().size());
    for (std::string_view rest = attribute->text();;) {
      const std::size_t dot = std::min(rest.find('.'), rest.size());
      const std::string_view part = rest.substr(0, dot);
      const bool digits = !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
      const auto number = digits ? parse_integer(part) : std::nullopt;
      meter.items(4);
      parts_.push_back(number ? Value(*number) : Value(part));
      if (dot == rest.size()) break;
      rest.remove_prefix(dot + 1);
    }
  }

  [[nodiscard]] Value read(Value item, Meter& meter) const {
    for (const Value& part : parts_) {
      meter.expression();
      item = subscript_of(item, part, meter);
      if (fallback_ != nullptr && item.is(Kind::undefined)) item = *fallback_;
    }
    return item;
  }

 private:
  std::vector<Value> parts_;
  const Value* fallback_;
};

/// Strings in lower case when case is not to count, anything else as it is.
[[nodiscard]] inline Value without_case(const Value& value, bool case_sensitive, Meter& meter) {
  if (case_sensitive || !value.is(Kind::string)) return value;
  meter.bytes(value.text().size());
  return lower(value.text());
}

inline Value length_filter(Engine& engine, const Value& self, const Arguments& arguments) {
  arguments.expect_none("length");
  const auto number = [](std::size_t n) { return Value(static_cast<std::int64_t>(n)); };
  switch (self.kind()) {
    case Kind::undefined:
      return 0;
    case Kind::string:
      engine.meter().characters(self.text().size());
      return number(count_code_points(self.text()));
    case Kind::mapping:
      return number(self.entries().size());
    case Kind::range:
      return self.as<Range>().count;
    case Kind::loop:
      return number(self.as<Loop>().items.size());
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

inline Value first_filter(Engine& engine, const Value& self, const Arguments& arguments) {
  arguments.expect_none("first");
  const Items items = items_of(self, engine.meter());
  return items.size() == 0 ? Value::undefined("there is no first item, the list is empty") : items[0];
}

inline Value last_filter(Engine& engine, const Value& self, const Arguments& arguments) {
  arguments.expect_none("last");
  if (self.is(Kind::sequence) && self.as<Sequence>().form == Form::generator)
    fail("a generator has no last item");
  const Items items = items_of(self, engine.meter());
  return items.size() == 0 ? Value::undefined("there is no last item, the list is empty")
                           : items[items.size() - 1];
}

inline Value list_filter(Engine& engine, const Value& self, const Arguments& arguments) {
  arguments.expect_none("list");
  return Value::list(items_of(self, engine.meter()).copy(engine.meter()));
}

inline Value items_filter(Engine& engine, const Value& self, const Arguments& arguments) {
  arguments.expect_none("items");
  if (self.is(Kind::undefined)) return generator({});
  if (!self.is(Kind::mapping)) fail("'items' wants a mapping, not '", type_name(self), "'");
  return generator(pairs(self, engine.meter()));
}

inline Value reverse_filter(Engine& engine, const Value& self, const Arguments& arguments) {
  arguments.expect_none("reverse");
  if (self.is(Kind::string)) return text_slice(self.text(), Value(), Value(), -1, engine.meter());
  std::vector<Value> items = items_of(self, engine.meter()).copy(engine.meter());
  std::reverse(items.begin(), items.end());
  return generator(std::move(items));
}

inline Value join_filter(Engine& engine, const Value& self, const Arguments& arguments) {
  const auto [separator, attribute] = arguments.bind("join", {"d", "attribute"});
  const Value between = separator == nullptr ? Value("") : printed(*separator, engine);
  const AttributePath path(attribute, engine.meter());
  const Items items = items_of(self, engine.meter());
  std::string out;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const Value part = printed(path.read(items[i], engine.meter()), engine);
    engine.meter().bytes(between.text().size() + part.text().size());
    if (i > 0) out.append(between.text());
    out.append(part.text());
    engine.meter().check_length(out.size());
  }
  return out;
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
  const AttributePath path(arguments.find("attribute"), engine.meter(), arguments.find("default"));
  const Arguments rest = rest_of(arguments, 1);
  const Items items = items_of(self, engine.meter());
  engine.meter().items(items.size());
  std::vector<Value> out;
  for (std::size_t i = 0; i < items.size(); ++i) {
    out.push_back(by_attribute
                      ? path.read(items[i], engine.meter())
                      : engine.filter(string_argument(&arguments.positional[0], "map"), items[i], rest));
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
  const AttributePath path(by_attribute ? &arguments.positional[0] : nullptr, engine.meter());
  const bool has_test = arguments.positional.size() > skipped;
  const Arguments rest = rest_of(arguments, skipped + 1);
  const Items items = items_of(self, engine.meter());
  engine.meter().items(items.size());
  std::vector<Value> out;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const Value seen = path.read(items[i], engine.meter());
    const bool passes =
        has_test ? engine.test(string_argument(&arguments.positional[skipped], "select"), seen, rest)
                 : truth(seen);
    if (passes == keep) out.push_back(items[i]);
  }
  return generator(std::move(out));
}

/// The keys to sort by: one for each attribute that is named, with commas between them.
[[nodiscard]] inline Value sort_key(const Value& item, const std::vector<AttributePath>& paths, bool exact,
                                    Meter& meter) {
  if (paths.size() == 1) return without_case(paths[0].read(item, meter), exact, meter);
  std::vector<Value> parts;
  for (const AttributePath& path : paths) parts.push_back(without_case(path.read(item, meter), exact, meter));
  return Value::list(std::move(parts));
}

inline Value sort_filter(Engine& engine, const Value& self, const Arguments& arguments) {
  const auto [reverse, sensitive, attribute] =
      arguments.bind("sort", {"reverse", "case_sensitive", "attribute"});
  const bool exact = truth_argument(sensitive, false);
  std::vector<AttributePath> paths;
  if (attribute != nullptr && attribute->is(Kind::string)) {
    for (const Value& part : split(attribute->text(), ",", -1, engine.meter()))
      paths.emplace_back(&part, engine.meter());
  } else {
    paths.emplace_back(attribute, engine.meter());
  }
  const Items items = items_of(self, engine.meter());
  engine.meter().items(2 * items.size());
  std::vector<Keyed> rows;
  for (std::size_t i = 0; i < items.size(); ++i) {
    rows.push_back({sort_key(items[i], paths, exact, engine.meter()), items[i]});
  }
  return Value::list(sorted_values(std::move(rows), truth_argument(reverse, false), engine.meter()));
}

inline Value dictsort_filter(Engine& engine, const Value& self, const Arguments& arguments) {
  const auto [sensitive, by, reverse] = arguments.bind("dictsort", {"case_sensitive", "by", "reverse"});
  if (self.is(Kind::undefined)) refuse_undefined(self);
  if (!self.is(Kind::mapping)) fail("'dictsort' wants a mapping, not '", type_name(self), "'");
  const std::string_view which = by == nullptr ? "key" : string_argument(by, "dictsort");
  if (which != "key" && which != "value") fail("'dictsort' sorts by 'key' or 'value'");
  const bool exact = truth_argument(sensitive, false);
  std::vector<Keyed> rows;
  for (Value& pair : pairs(self, engine.meter())) {
    const Value& key = pair.items()[which == "key" ? 0 : 1];
    rows.push_back({without_case(key, exact, engine.meter()), std::move(pair)});
  }
  return Value::list(sorted_values(std::move(rows), truth_argument(reverse, false), engine.meter()));
}

inline Value unique_filter(Engine& engine, const Value& self, const Arguments& arguments) {
  const auto [sensitive, attribute] = arguments.bind("unique", {"case_sensitive", "attribute"});
  const AttributePath path(attribute, engine.meter());
  const Items items = items_of(self, engine.meter());
  const bool exact = truth_argument(sensitive, false);
  engine.meter().entries(items.size());
  Table seen;
  std::vector<Value> out;
  for (std::size_t i = 0; i < items.size(); ++i) {
    Value key = without_case(path.read(items[i], engine.meter()), exact, engine.meter());
    if (!hashable(key)) fail("'unique' does not take '", type_name(key), "'");
    if (seen.find(key) != nullptr) continue;
    seen.set(std::move(key), nullptr);
    out.push_back(items[i]);
  }
  return generator(std::move(out));
}

template <bool largest>
Value extreme_filter(Engine& engine, const Value& self, const Arguments& arguments) {
  const auto [sensitive, attribute] =
      arguments.bind(largest ? "max" : "min", {"case_sensitive", "attribute"});
  const AttributePath path(attribute, engine.meter());
  const Items items = items_of(self, engine.meter());
  if (items.size() == 0) return Value::undefined("there is no smallest or largest item, the list is empty");
  const bool exact = truth_argument(sensitive, false);
  const auto key = [&](const Value& item) {
    return without_case(path.read(item, engine.meter()), exact, engine.meter());
  };
  std::size_t best = 0;
  Value best_key = key(items[0]);
  for (std::size_t i = 1; i < items.size(); ++i) {
    Value other = key(items[i]);
    if (!(largest ? less(best_key, other, engine.meter()) : less(other, best_key, engine.meter()))) continue;
    best = i;
    best_key = std::move(other);
  }
  return items[best];
}

inline Value sum_filter(Engine& engine, const Value& self, const Arguments& arguments) {
  const auto [attribute, start] = arguments.bind("sum", {"attribute", "start"});
  const AttributePath path(attribute, engine.meter());
  const Items items = items_of(self, engine.meter());
  Value total = start == nullptr ? Value(0) : *start;
  for (std::size_t i = 0; i < items.size(); ++i) {
    engine.meter().expression();
    total = calculate(Operator::add, total, path.read(items[i], engine.meter()), engine.meter());
  }
  return total;
}

inline Value batch_filter(Engine& engine, const Value& self, const Arguments& arguments) {
  const auto [width, fill] = arguments.bind("batch", {"linecount", "fill_with"});
  const std::int64_t columns = integer_argument(width, 0, "batch");
  if (columns < 1) fail("'batch' wants a number of columns above zero");
  const std::vector<Value> items = items_of(self, engine.meter()).copy(engine.meter());
  const auto step = static_cast<std::size_t>(columns);
  std::vector<Value> rows;
  for (std::size_t at = 0; at < items.size(); at += std::min(step, items.size() - at)) {
    const std::size_t taken = std::min(step, items.size() - at);
    const bool filled = fill != nullptr && !fill->is(Kind::none) && taken < step;
    engine.meter().items(filled ? step : taken);
    std::vector<Value> row(items.begin() + static_cast<std::ptrdiff_t>(at),
                           items.begin() + static_cast<std::ptrdiff_t>(at + taken));
    if (filled) row.resize(step, *fill);
    rows.push_back(Value::list(std::move(row)));
  }
  return generator(std::move(rows));
}

inline Value slice_filter(Engine& engine, const Value& self, const Arguments& arguments) {
  const auto [count, fill] = arguments.bind("slice", {"slices", "fill_with"});
  const std::int64_t wanted = integer_argument(count, 0, "slice");
  if (wanted < 1) fail("'slice' wants a number of slices above zero");
  const auto slices = static_cast<std::size_t>(wanted);
  engine.meter().repeated_items(4, slices);
  const std::vector<Value> items = items_of(self, engine.meter()).copy(engine.meter());
  const std::size_t longer = items.size() % slices;
  std::vector<Value> rows;
  auto next = items.begin();
  for (std::size_t i = 0; i < slices; ++i) {
    const auto end = next + static_cast<std::ptrdiff_t>(items.size() / slices + (i < longer ? 1 : 0));
    std::vector<Value> row(next, end);
    if (fill != nullptr && !fill->is(Kind::none) && i >= longer) row.push_back(*fill);
    rows.push_back(Value::list(std::move(row)));
    next = end;
  }
  return generator(std::move(rows));
}

inline Value groupby_filter(Engine& engine, const Value& self, const Arguments& arguments) {
  const auto [attribute, fallback, sensitive] =
      arguments.bind("groupby", {"attribute", "default", "case_sensitive"});
  if (attribute == nullptr) fail("'groupby' wants the name of an attribute");
  const AttributePath path(attribute, engine.meter(), fallback);
  Meter& meter = engine.meter();
  const bool exact = truth_argument(sensitive, false);
  const Items items = items_of(self, meter);
  meter.items(8 * items.size());
  std::vector<Keyed> rows;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const Value key = without_case(path.read(items[i], meter), exact, meter);
    rows.push_back({key, Value::tuple({key, items[i]})});
  }
  std::vector<Value> groups;
  std::vector<Value> group;
  Value key;
  const auto finish = [&] {
    if (group.empty()) return;
    groups.push_back(Value::tuple({path.read(group[0], meter), Value::list(std::exchange(group, {}))}));
  };
  for (const Value& row : sorted_values(std::move(rows), false, meter)) {
    if (!group.empty() && !equal(key, row.items()[0], meter)) finish();
    key = row.items()[0];
    group.push_back(row.items()[1]);
  }
  finish();
  return Value::list(std::move(groups));
}

inline Value attr_filter(Engine&, const Value& self, const Arguments& arguments) {
  const auto [name] = arguments.bind("attr", {"name"});
  const std::string_view wanted = string_argument(name, "attr");
  return own_attribute(self, *name).value_or(absent(self, wanted));
}

inline constexpr NamedOperation row_filters[] = {
    {"attr", attr_filter},
    {"batch", batch_filter},
    {"count", length_filter},
    {"d", default_filter},
    {"default", default_filter},
    {"dictsort", dictsort_filter},
    {"first", first_filter},
    {"groupby", groupby_filter},
    {"items", items_filter},
    {"join", join_filter},
    {"last", last_filter},
    {"length", length_filter},
    {"list", list_filter},
    {"map", map_filter},
    {"max", extreme_filter<true>},
    {"min", extreme_filter<false>},
    {"reject", select_filter<false, false>},
    {"rejectattr", select_filter<true, false>},
    {"reverse", reverse_filter},
    {"select", select_filter<false, true>},
    {"selectattr", select_filter<true, true>},
    {"slice", slice_filter},
    {"sort", sort_filter},
    {"sum", sum_filter},
    {"unique", unique_filter},
};

}  // namespace mica::jinja::detail
