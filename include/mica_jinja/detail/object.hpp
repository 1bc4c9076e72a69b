// SPDX-License-Identifier: Apache-2.0
//
// The objects behind strings and sequences, and the members of Value that look into them.
#pragma once

#include "mica_jinja/template_error.hpp"
#include "mica_jinja/value.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::jinja::detail {

/// A string, or the reason why a value is undefined.
struct Text final : Object {
  Text(Kind text_kind, std::string text) : Object(text_kind), bytes(std::move(text)) {}
  std::string bytes;
};

/// What a sequence would be in Python, which decides how it prints, compares and counts as true.
enum class Form : std::uint8_t { list, tuple, generator, items_view, keys_view, values_view };

inline void include(Object& container, const Value& part) {
  const Object* object = part.object();
  if (object == nullptr) return;
  container.depth = std::max(container.depth, object->depth + 1);
  container.has_state = container.has_state || object->has_state;
}

inline void check_depth(const Object& container) {
  if (container.depth > max_container_depth) {
    exceed("lists and mappings nest deeper than ", max_container_depth);
  }
}

struct Sequence final : Object {
  Sequence(Form sequence_form, std::vector<Value> values)
      : Object(Kind::sequence), form(sequence_form), items(std::move(values)) {
    depth = 1;
    for (const Value& item : items) include(*this, item);
    check_depth(*this);
  }

  Form form;
  std::vector<Value> items;
  mutable bool spent = false;  ///< a generator gives its items once
};

[[nodiscard]] inline double number_of(const Value& value) {
  switch (value.kind()) {
    case Kind::boolean:
      return value.boolean() ? 1.0 : 0.0;
    case Kind::integer:
      return static_cast<double>(value.integer());
    default:
      return value.real();
  }
}

/// The type's name in Python, for messages.
[[nodiscard]] inline std::string_view type_name(const Value& value) {
  static constexpr std::array<std::string_view, 6> forms = {"list",       "tuple",     "generator",
                                                            "dict_items", "dict_keys", "dict_values"};
  switch (value.kind()) {
    case Kind::undefined:
      return "Undefined";
    case Kind::none:
      return "NoneType";
    case Kind::boolean:
      return "bool";
    case Kind::integer:
      return "int";
    case Kind::real:
      return "float";
    case Kind::string:
      return "str";
    case Kind::sequence:
      return forms[static_cast<std::size_t>(value.as<Sequence>().form)];
    case Kind::mapping:
      return "dict";
    case Kind::name_space:
      return "Namespace";
    case Kind::loop:
      return "LoopContext";
    case Kind::callable:
      return "function";
  }
  return "value";
}

/// Fails with the reason that the undefined value carries.
[[noreturn]] inline void refuse_undefined(const Value& value) {
  fail(value.object() == nullptr ? std::string("the value is undefined") : value.as<Text>().bytes);
}

/// A list or tuple, which has places.
[[nodiscard]] inline bool is_row(const Value& value) {
  return value.is(Kind::sequence) && value.as<Sequence>().form <= Form::tuple;
}

[[nodiscard]] inline Value make_sequence(Form form, std::vector<Value> items) {
  return Value(std::make_shared<const Sequence>(form, std::move(items)));
}

}  // namespace mica::jinja::detail

namespace mica::jinja {

inline Value::Value(std::string text)
    : Value(std::make_shared<const detail::Text>(Kind::string, std::move(text))) {}

inline Value Value::undefined(std::string why) {
  return Value(std::make_shared<const detail::Text>(Kind::undefined, std::move(why)));
}

inline Value Value::list(std::vector<Value> items) {
  return detail::make_sequence(detail::Form::list, std::move(items));
}

inline Value Value::tuple(std::vector<Value> items) {
  return detail::make_sequence(detail::Form::tuple, std::move(items));
}

inline std::string_view Value::text() const& { return as<detail::Text>().bytes; }

inline const std::vector<Value>& Value::items() const& { return as<detail::Sequence>().items; }

}  // namespace mica::jinja

#include "mica_jinja/detail/table.hpp"  // mappings
