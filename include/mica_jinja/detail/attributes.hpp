// SPDX-License-Identifier: Apache-2.0
//
// value.name: methods, the attributes of namespaces and loops, and entries of mappings. The names that change
// a list or mapping in Python (append, pop, update ...) are undefined, as in Jinja's immutable sandbox.
#pragma once

#include "mica_jinja/detail/arguments.hpp"
#include "mica_jinja/detail/callable.hpp"
#include "mica_jinja/detail/lookup.hpp"
#include "mica_jinja/detail/state.hpp"
#include "mica_jinja/detail/string_methods.hpp"
#include "mica_jinja/value.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::jinja::detail {

/// The entries of a mapping as tuples.
[[nodiscard]] inline std::vector<Value> pairs(const Value& mapping, Meter& meter) {
  meter.entries(mapping.entries().size());
  std::vector<Value> out;
  out.reserve(mapping.entries().size());
  for (const auto& [key, value] : mapping.entries()) out.push_back(Value::tuple({key, value}));
  return out;
}

inline Value items_method(Engine& engine, const Value& self, const Arguments& arguments) {
  arguments.expect_none("items");
  return make_sequence(Form::items_view, pairs(self, engine.meter()));
}

inline Value keys_method(Engine& engine, const Value& self, const Arguments& arguments) {
  arguments.expect_none("keys");
  return make_sequence(Form::keys_view, keys(self, engine.meter()).copy(engine.meter()));
}

inline Value values_method(Engine& engine, const Value& self, const Arguments& arguments) {
  arguments.expect_none("values");
  engine.meter().items(self.entries().size());
  std::vector<Value> out;
  out.reserve(self.entries().size());
  for (const auto& entry : self.entries()) out.push_back(entry.second);
  return make_sequence(Form::values_view, std::move(out));
}

inline Value get_method(Engine&, const Value& self, const Arguments& arguments) {
  const auto [key, fallback] = arguments.bind("get", {"key", "default"});
  if (key == nullptr) fail("'get' lacks an argument");
  if (!hashable(*key)) fail("'", type_name(*key), "' cannot be the key of a mapping");
  if (const Value* found = self.as<Mapping>().find(*key)) return *found;
  return fallback == nullptr ? Value(nullptr) : *fallback;
}

/// copy() of what never changes.
inline Value itself(Engine&, const Value& self, const Arguments& arguments) {
  arguments.expect_none("copy");
  return self;
}

inline Value row_index_method(Engine& engine, const Value& self, const Arguments& arguments) {
  const auto [wanted] = arguments.bind("index", {"value"});
  if (wanted == nullptr) fail("'index' lacks an argument");
  for (std::size_t i = 0; i < self.items().size(); ++i) {
    if (equal(self.items()[i], *wanted, engine.meter())) return static_cast<std::int64_t>(i);
  }
  fail("'index' did not find the value");
}

inline Value row_count_method(Engine& engine, const Value& self, const Arguments& arguments) {
  const auto [wanted] = arguments.bind("count", {"value"});
  if (wanted == nullptr) fail("'count' lacks an argument");
  std::int64_t count = 0;
  for (const Value& item : self.items()) count += equal(item, *wanted, engine.meter()) ? 1 : 0;
  return count;
}

inline Value loop_cycle_method(Engine&, const Value& self, const Arguments& arguments) {
  if (arguments.positional.empty()) fail("'cycle' lacks an argument");
  return arguments.positional[self.as<Loop>().index0 % arguments.positional.size()];
}

inline Value loop_changed_method(Engine& engine, const Value& self, const Arguments& arguments) {
  const auto& loop = self.as<Loop>();
  const auto& now = arguments.positional;
  const bool same =
      loop.seen && std::equal(now.begin(), now.end(), loop.last_seen.begin(), loop.last_seen.end(),
                              [&](const Value& a, const Value& b) { return equal(a, b, engine.meter()); });
  for (const Value& value : now) {
    if (value.object() != nullptr && value.object()->has_state)
      fail("'changed' cannot keep a namespace or a loop");
  }
  loop.seen = true;
  loop.last_seen = now;
  return !same;
}

inline Value cycler_next_method(Engine&, const Value& self, const Arguments& arguments) {
  arguments.expect_none("next");
  const auto& cycler = self.as<Cycler>();
  const std::size_t at = cycler.at;
  cycler.at = (at + 1) % cycler.items.size();
  return cycler.items[at];
}

inline Value cycler_reset_method(Engine&, const Value& self, const Arguments& arguments) {
  arguments.expect_none("reset");
  self.as<Cycler>().at = 0;
  return nullptr;
}

inline constexpr NamedOperation mapping_methods[] = {{"copy", itself},
                                                     {"get", get_method},
                                                     {"items", items_method},
                                                     {"keys", keys_method},
                                                     {"values", values_method}};
inline constexpr NamedOperation list_methods[] = {
    {"copy", itself}, {"count", row_count_method}, {"index", row_index_method}};
inline constexpr NamedOperation tuple_methods[] = {{"count", row_count_method}, {"index", row_index_method}};
inline constexpr NamedOperation loop_methods[] = {{"changed", loop_changed_method},
                                                  {"cycle", loop_cycle_method}};
inline constexpr NamedOperation cycler_methods[] = {{"next", cycler_next_method},
                                                    {"reset", cycler_reset_method}};

[[nodiscard]] inline std::span<const NamedOperation> methods_of(const Value& value) {
  switch (value.kind()) {
    case Kind::string:
      return string_methods;
    case Kind::mapping:
      return mapping_methods;
    case Kind::loop:
      return loop_methods;
    case Kind::cycler:
      return cycler_methods;
    case Kind::sequence:
      break;
    default:
      return {};
  }
  const Form form = value.as<Sequence>().form;
  if (form == Form::list) return list_methods;
  if (form == Form::tuple) return tuple_methods;
  return {};
}

[[nodiscard]] inline bool is_one_of(std::string_view name, std::span<const std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Methods that would change the value: they hide entries of the same name and are themselves out of reach.
[[nodiscard]] inline bool is_mutator(const Value& value, std::string_view name) {
  static constexpr std::string_view of_mappings[] = {"clear", "pop", "popitem", "setdefault", "update"};
  static constexpr std::string_view of_lists[] = {"append", "clear",  "extend",  "insert",
                                                  "pop",    "remove", "reverse", "sort"};
  if (value.is(Kind::mapping)) return is_one_of(name, of_mappings);
  return value.is(Kind::sequence) && value.as<Sequence>().form == Form::list && is_one_of(name, of_lists);
}

/// A method, or an attribute of something that has attributes.
[[nodiscard]] inline std::optional<Value> own_attribute(const Value& value, const Value& key) {
  const std::string_view name = key.text();
  for (const NamedOperation& method : methods_of(value)) {
    if (method.name == name) return Value(std::make_shared<const Method>(method, value));
  }
  if (is_mutator(value, name)) {
    return Value::undefined(
        join("'", name, "' would change the ", type_name(value), ", which templates may not do"));
  }
  if (value.is(Kind::loop)) return loop_field(value.as<Loop>(), name);
  if (value.is(Kind::cycler) && name == "current") return value.as<Cycler>().items[value.as<Cycler>().at];
  if (!value.is(Kind::name_space)) return std::nullopt;
  const Value* found = value.as<NameSpace>().attributes.find(key);
  return found == nullptr ? std::nullopt : std::optional(*found);
}

[[nodiscard]] inline Value absent(const Value& value, std::string_view name) {
  return Value::undefined(join("'", type_name(value), "' has no '", escaped(name), "'"));
}

/// value.name, where `key` is the name as a value.
[[nodiscard]] inline Value attribute_of(const Value& value, const Value& key, Meter& meter) {
  if (value.is(Kind::undefined)) refuse_undefined(value);
  if (auto own = own_attribute(value, key)) return *own;
  if (auto item = item_at(value, key, meter)) return *item;
  return absent(value, key.text());
}

/// value[index]
[[nodiscard]] inline Value subscript_of(const Value& value, const Value& index, Meter& meter) {
  if (value.is(Kind::undefined)) refuse_undefined(value);
  if (auto item = item_at(value, index, meter)) return *item;
  if (!index.is(Kind::string)) return Value::undefined(join("'", type_name(value), "' has no such item"));
  if (auto own = own_attribute(value, index)) return *own;
  return absent(value, index.text());
}

}  // namespace mica::jinja::detail
