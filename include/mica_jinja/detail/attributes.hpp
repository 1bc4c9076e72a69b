// SPDX-License-Identifier: Apache-2.0
//
// value.name: methods, the attributes of namespaces and loops, and entries of mappings. The names that change
// a list or mapping in Python (append, pop, update ...) are undefined, as in Jinja's immutable sandbox.
#pragma once

#include "mica_jinja/detail/callable.hpp"
#include "mica_jinja/detail/lookup.hpp"
#include "mica_jinja/detail/state.hpp"
#include "mica_jinja/detail/string_methods.hpp"
#include "mica_jinja/value.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
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

template <Form form>
Value view_method(Engine& engine, const Value& self, const Arguments&) {
  if constexpr (form == Form::items_view) return make_sequence(form, pairs(self, engine.meter()));
  engine.meter().items(self.entries().size());
  std::vector<Value> out;
  for (const auto& [key, value] : self.entries()) out.push_back(form == Form::keys_view ? key : value);
  return make_sequence(form, std::move(out));
}

inline Value get_method(Engine&, const Value& self, const Arguments& arguments) {
  const auto [key, fallback] = arguments.bind("get", {"key", "default"});
  if (key == nullptr) fail("'get' lacks an argument");
  if (!hashable(*key)) fail("'", type_name(*key), "' cannot be the key of a mapping");
  if (const Value* found = self.as<Mapping>().find(*key)) return *found;
  return fallback == nullptr ? Value(nullptr) : *fallback;
}

inline constexpr NamedOperation mapping_methods[] = {
    {"get", get_method},
    {"items", view_method<Form::items_view>, no_arguments},
    {"keys", view_method<Form::keys_view>, no_arguments},
    {"values", view_method<Form::values_view>, no_arguments}};

[[nodiscard]] inline std::span<const NamedOperation> methods_of(const Value& value) {
  if (value.is(Kind::string)) return string_methods;
  if (value.is(Kind::mapping)) return mapping_methods;
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
