// SPDX-License-Identifier: Apache-2.0
//
// value.name, value[index] and value[first:last:step]: methods, the attributes of namespaces and loops, items
// and entries. What is not there is undefined, not an error. The names that change a list or mapping in Python
// (append, pop, update ...) are undefined too, as in Jinja's immutable sandbox.
#pragma once

#include "mica_jinja/detail/callable.hpp"
#include "mica_jinja/detail/comparison.hpp"
#include "mica_jinja/detail/meter.hpp"
#include "mica_jinja/detail/object.hpp"
#include "mica_jinja/detail/state.hpp"
#include "mica_jinja/detail/string_methods.hpp"
#include "mica_jinja/detail/unicode.hpp"
#include "mica_jinja/template_error.hpp"
#include "mica_jinja/value.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::jinja::detail {

/// Place of a Python index, counted from the end when negative.
[[nodiscard]] inline std::optional<std::size_t> place(std::int64_t index, std::size_t size) {
  const auto length = static_cast<std::int64_t>(size);
  if (index < 0) index += length;
  if (index < 0 || index >= length) return std::nullopt;
  return static_cast<std::size_t>(index);
}

/// The n-th code point of a text; n counts from the end when negative.
[[nodiscard]] inline std::optional<Value> character_at(std::string_view text, std::int64_t index,
                                                       Meter& meter) {
  meter.characters(text.size());
  const auto wanted = place(index, count_code_points(text));
  if (!wanted) return std::nullopt;
  const std::size_t at = offset_of(text, *wanted);
  return Value(text.substr(at, decode(text, at).size));
}

/// value[index] for the values and indices that Python has it for.
[[nodiscard]] inline std::optional<Value> item_at(const Value& value, const Value& index, Meter& meter) {
  if (index.is(Kind::string)) meter.bytes(index.text().size());
  if (value.is(Kind::mapping)) {
    const Value* found = hashable(index) ? value.as<Mapping>().find(index) : nullptr;
    return found == nullptr ? std::nullopt : std::optional(*found);
  }
  if (!is_whole(index)) return std::nullopt;
  if (value.is(Kind::string)) return character_at(value.text(), whole(index), meter);
  if (!is_row(value)) return std::nullopt;
  const auto at = place(whole(index), value.items().size());
  return at ? std::optional(value.items()[*at]) : std::nullopt;
}

/// Three optional numbers of a slice, and what they select out of `size` items.
struct SliceBounds {
  std::int64_t first = 0;
  std::int64_t step = 1;
  std::size_t count = 0;

  [[nodiscard]] std::size_t at(std::size_t i) const {
    return static_cast<std::size_t>(first + static_cast<std::int64_t>(i) * step);
  }
};

/// A bound of a slice; undefined and none mean that it is left out.
[[nodiscard]] inline std::optional<std::int64_t> slice_number(const Value& value) {
  if (value.is(Kind::undefined) || value.is(Kind::none)) return std::nullopt;
  if (!is_whole(value)) fail("a slice is made with integers, not with '", type_name(value), "'");
  return whole(value);
}

[[nodiscard]] inline SliceBounds slice_bounds(const Value& first, const Value& last, const Value& step,
                                              std::size_t size) {
  const auto length = static_cast<std::int64_t>(size);
  SliceBounds bounds;
  // Longer steps than the row select the same single item, and cannot overflow.
  bounds.step = std::clamp(slice_number(step).value_or(1), -length - 1, length + 1);
  if (bounds.step == 0) fail("the step of a slice is zero");
  const bool forward = bounds.step > 0;
  const std::int64_t min = forward ? 0 : -1;
  const std::int64_t max = forward ? length : length - 1;
  const auto resolve = [&](const Value& bound, std::int64_t fallback) {
    const auto number = slice_number(bound);
    if (!number) return fallback;
    return std::clamp(*number < 0 ? *number + length : *number, min, max);
  };
  bounds.first = resolve(first, forward ? 0 : length - 1);
  const std::int64_t end = resolve(last, forward ? length : -1);
  const std::int64_t distance = forward ? end - bounds.first : bounds.first - end;
  const std::int64_t stride = forward ? bounds.step : -bounds.step;
  bounds.count = distance <= 0 ? 0 : static_cast<std::size_t>((distance + stride - 1) / stride);
  return bounds;
}

/// Limit: the step is 1.
[[nodiscard]] inline std::string text_slice(std::string_view text, const Value& first, const Value& last,
                                            const Value& step, Meter& meter) {
  if (slice_number(step).value_or(1) != 1) fail("a string is sliced with the step 1 alone");
  meter.characters(text.size());
  const SliceBounds bounds = slice_bounds(first, last, step, count_code_points(text));
  if (bounds.count == 0) return {};
  text.remove_prefix(offset_of(text, bounds.at(0)));
  return std::string(text.substr(0, offset_of(text, bounds.count)));
}

/// value[first:last:step]
[[nodiscard]] inline Value slice_of(const Value& value, const Value& first, const Value& last,
                                    const Value& step, Meter& meter) {
  if (value.is(Kind::string)) return text_slice(value.text(), first, last, step, meter);
  if (!is_row(value)) fail("'", type_name(value), "' cannot be sliced");
  const std::vector<Value>& items = value.items();
  const SliceBounds bounds = slice_bounds(first, last, step, items.size());
  meter.items(bounds.count);
  std::vector<Value> out;
  out.reserve(bounds.count);
  for (std::size_t i = 0; i < bounds.count; ++i) out.push_back(items[bounds.at(i)]);
  return make_sequence(value.as<Sequence>().form, std::move(out));
}

/// loop.<name> for everything that is not a method.
[[nodiscard]] inline std::optional<Value> loop_field(const Loop& loop, std::string_view name) {
  const auto number = [](std::size_t n) { return Value(static_cast<std::int64_t>(n)); };
  const std::vector<Value>& items = loop.row.items();
  const std::size_t size = items.size();
  if (name == "index") return number(loop.index0 + 1);
  if (name == "index0") return number(loop.index0);
  if (name == "revindex") return number(size - loop.index0);
  if (name == "revindex0") return number(size - loop.index0 - 1);
  if (name == "first") return Value(loop.index0 == 0);
  if (name == "last") return Value(loop.index0 + 1 == size);
  if (name == "length") return number(size);
  if (name == "previtem")
    return loop.index0 == 0 ? Value::undefined("there is no previous item") : items[loop.index0 - 1];
  if (name == "nextitem")
    return loop.index0 + 1 == size ? Value::undefined("there is no next item") : items[loop.index0 + 1];
  return std::nullopt;
}

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
  if (is_mutator(value, name))
    return Value::undefined(
        join("'", name, "' would change the ", type_name(value), ", which templates may not do"));
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
