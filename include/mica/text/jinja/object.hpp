// SPDX-License-Identifier: Apache-2.0
//
// The objects behind strings, sequences, ranges and mappings, and the members of Value that look into them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "mica/text/jinja/template_error.hpp"
#include "mica/text/jinja/value.hpp"

namespace mica::text::jinja::detail {

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

/// Numbers that are computed when somebody asks: range(100000) costs nothing.
struct Range final : Object {
  Range(std::int64_t range_start, std::int64_t range_stop, std::int64_t range_step, std::int64_t range_count)
      : Object(Kind::range), start(range_start), stop(range_stop), step(range_step), count(range_count) {}

  [[nodiscard]] std::int64_t at(std::int64_t index) const noexcept { return start + index * step; }

  std::int64_t start;
  std::int64_t stop;
  std::int64_t step;
  std::int64_t count;  ///< of numbers; checked against Limits::range_items by whoever makes the range
};

/// Whether Python could use the value as a key.
[[nodiscard]] inline bool hashable(const Value& key) {
  if (key.is(Kind::mapping)) return false;
  if (!key.is(Kind::sequence)) return true;
  const auto& sequence = key.as<Sequence>();
  return sequence.form == Form::tuple && std::all_of(sequence.items.begin(), sequence.items.end(), hashable);
}

[[nodiscard]] inline double number_of(const Value& value) {
  switch (value.kind()) {
    case Kind::boolean: return value.boolean() ? 1.0 : 0.0;
    case Kind::integer: return static_cast<double>(value.integer());
    default: return value.real();
  }
}

/// Whether two keys are the same key. Tuples as keys are compared item by item; their depth is bounded.
[[nodiscard]] inline bool same_key(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) {
    if (a.is(Kind::integer) && b.is(Kind::integer)) return a.integer() == b.integer();
    return number_of(a) == number_of(b);
  }
  if (a.kind() != b.kind()) return false;
  if (a.is(Kind::string)) return a.text() == b.text();
  if (a.is(Kind::none)) return true;
  if (!a.is(Kind::sequence)) return a.object() == b.object();
  return std::equal(a.items().begin(), a.items().end(), b.items().begin(), b.items().end(), same_key);
}

[[nodiscard]] inline std::size_t hash_key(const Value& key) {
  if (key.is(Kind::string)) return std::hash<std::string_view>{}(key.text());
  if (key.is_number()) return std::hash<double>{}(number_of(key));
  if (!key.is(Kind::sequence)) return std::hash<const void*>{}(key.object());
  std::size_t hash = key.items().size();
  for (const Value& item : key.items()) hash = hash * 31 + hash_key(item);
  return hash;
}

struct Mapping final : Object {
  explicit Mapping(Value::Entries pairs) : Object(Kind::mapping) {
    depth = 1;
    entries.reserve(pairs.size());
    for (auto& [key, value] : pairs) insert(std::move(key), std::move(value));
    check_depth(*this);
  }

  [[nodiscard]] const Value* find(const Value& key) const {
    const std::size_t at = place_of(key);
    return at == entries.size() ? nullptr : &entries[at].second;
  }

  Value::Entries entries;

 private:
  static constexpr std::size_t few = 8;  // up to here comparing is as quick as hashing

  void insert(Value key, Value value) {
    if (!hashable(key)) fail("a list or mapping cannot be the key of a mapping");
    include(*this, key);
    include(*this, value);
    const std::size_t at = place_of(key);
    if (at < entries.size()) {
      entries[at].second = std::move(value);
      return;
    }
    entries.emplace_back(std::move(key), std::move(value));
    if (entries.size() == few + 1) {
      for (std::size_t i = 0; i < few; ++i) places_.emplace(hash_key(entries[i].first), i);
    }
    if (entries.size() > few) places_.emplace(hash_key(entries[at].first), at);
  }

  [[nodiscard]] std::size_t place_of(const Value& key) const {
    if (entries.size() <= few) {
      for (std::size_t i = 0; i < entries.size(); ++i) {
        if (same_key(entries[i].first, key)) return i;
      }
      return entries.size();
    }
    const auto [first, last] = places_.equal_range(hash_key(key));
    for (auto place = first; place != last; ++place) {
      if (same_key(entries[place->second].first, key)) return place->second;
    }
    return entries.size();
  }

  std::unordered_multimap<std::size_t, std::size_t> places_;
};

/// The type's name in Python, for messages.
[[nodiscard]] inline std::string_view type_name(const Value& value) {
  static constexpr std::array<std::string_view, 6> forms = {"list",       "tuple",     "generator",
                                                            "dict_items", "dict_keys", "dict_values"};
  switch (value.kind()) {
    case Kind::undefined: return "Undefined";
    case Kind::none: return "NoneType";
    case Kind::boolean: return "bool";
    case Kind::integer: return "int";
    case Kind::real: return "float";
    case Kind::string: return "str";
    case Kind::sequence: return forms[static_cast<std::size_t>(value.as<Sequence>().form)];
    case Kind::range: return "range";
    case Kind::mapping: return "dict";
    case Kind::name_space: return "Namespace";
    case Kind::loop: return "LoopContext";
    case Kind::cycler: return "Cycler";
    case Kind::callable: return "function";
  }
  return "value";
}

/// Fails with the reason that the undefined value carries.
[[noreturn]] inline void refuse_undefined(const Value& value) {
  fail(value.object() == nullptr ? std::string("the value is undefined") : value.as<Text>().bytes);
}

[[nodiscard]] inline Value make_sequence(Form form, std::vector<Value> items) {
  return Value(std::make_shared<const Sequence>(form, std::move(items)));
}

}  // namespace mica::text::jinja::detail

namespace mica::text::jinja {

inline Value::Value(std::string text) : Value(std::make_shared<const detail::Text>(Kind::string, std::move(text))) {}

inline Value Value::undefined(std::string why) {
  return Value(std::make_shared<const detail::Text>(Kind::undefined, std::move(why)));
}

inline Value Value::list(std::vector<Value> items) { return detail::make_sequence(detail::Form::list, std::move(items)); }

inline Value Value::tuple(std::vector<Value> items) {
  return detail::make_sequence(detail::Form::tuple, std::move(items));
}

inline Value Value::mapping(Entries entries) {
  return Value(std::make_shared<const detail::Mapping>(std::move(entries)));
}

inline std::string_view Value::text() const { return as<detail::Text>().bytes; }

inline const std::vector<Value>& Value::items() const { return as<detail::Sequence>().items; }

inline const Value::Entries& Value::entries() const { return as<detail::Mapping>().entries; }

inline const Value* Value::find(std::string_view key) const {
  return is(Kind::mapping) ? as<detail::Mapping>().find(Value(key)) : nullptr;
}

}  // namespace mica::text::jinja
