// SPDX-License-Identifier: Apache-2.0
//
// The objects behind strings, sequences and mappings, and the members of Value that look into them.
#pragma once

#include "mica_jinja/template_error.hpp"
#include "mica_jinja/value.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
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
  if (container.depth > max_container_depth)
    exceed("lists and mappings nest deeper than ", max_container_depth);
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
  if (value.is(Kind::boolean)) return value.boolean() ? 1.0 : 0.0;
  return value.is(Kind::integer) ? static_cast<double>(value.integer()) : value.real();
}

/// The type's name in Python, for messages.
[[nodiscard]] inline std::string_view type_name(const Value& value) {
  static constexpr std::string_view kinds[] = {"Undefined", "NoneType",    "bool",    "int",
                                               "float",     "str",         "list",    "dict",
                                               "Namespace", "LoopContext", "function"};
  static constexpr std::string_view forms[] = {"list",       "tuple",     "generator",
                                               "dict_items", "dict_keys", "dict_values"};
  if (value.is(Kind::sequence)) return forms[static_cast<std::size_t>(value.as<Sequence>().form)];
  return kinds[static_cast<std::size_t>(value.kind())];
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

/// Whether the value can be a key. Limit: tuples cannot.
[[nodiscard]] inline bool hashable(const Value& key) {
  return !key.is(Kind::mapping) && !key.is(Kind::sequence);
}

/// Whether two keys are the same key.
[[nodiscard]] inline bool same_key(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) {
    if (a.is(Kind::integer) && b.is(Kind::integer)) return a.integer() == b.integer();
    return number_of(a) == number_of(b);
  }
  if (a.kind() != b.kind()) return false;
  return a.object() == b.object() || (a.is(Kind::string) && a.text() == b.text());  // shared, and both `none`
}

[[nodiscard]] inline std::size_t hash_key(const Value& key) {
  if (key.is(Kind::string)) return std::hash<std::string_view>{}(key.text());
  return key.is_number() ? std::hash<double>{}(number_of(key)) : std::hash<const void*>{}(key.object());
}

/// An ordered table; finding costs the same however long it is. As with a Value, a temporary has no views.
class Table {
 public:
  [[nodiscard]] const Value::Entries& entries() const& noexcept { return entries_; }
  void entries() const&& = delete;

  [[nodiscard]] const Value* find(const Value& key) const& {
    const std::size_t at = place_of(key);
    return at == entries_.size() ? nullptr : &entries_[at].second;
  }
  void find(const Value& key) const&& = delete;

  /// Gives a key its value; one that is there keeps its place. The key must be hashable.
  void set(Value key, Value value) {
    const std::size_t at = place_of(key);
    if (at < entries_.size()) {
      entries_[at].second = std::move(value);
      return;
    }
    entries_.emplace_back(std::move(key), std::move(value));
    const std::size_t first_unplaced = entries_.size() == few + 1 ? 0 : at;
    for (std::size_t i = first_unplaced; entries_.size() > few && i <= at; ++i) {
      places_.emplace(hash_key(entries_[i].first), i);
    }
  }

  void reserve(std::size_t count) { entries_.reserve(count); }

  void clear() {
    entries_.clear();
    places_.clear();
  }

 private:
  static constexpr std::size_t few = 8;  // up to here comparing is as quick as hashing

  [[nodiscard]] std::size_t place_of(const Value& key) const {
    if (entries_.size() <= few) {
      std::size_t at = 0;
      while (at < entries_.size() && !same_key(entries_[at].first, key)) ++at;
      return at;
    }
    const auto [first, last] = places_.equal_range(hash_key(key));
    for (auto place = first; place != last; ++place) {
      if (same_key(entries_[place->second].first, key)) return place->second;
    }
    return entries_.size();
  }

  Value::Entries entries_;
  std::unordered_multimap<std::size_t, std::size_t> places_;  ///< by hash; empty while there are few entries
};

struct Mapping final : Object {
  explicit Mapping(Value::Entries pairs) : Object(Kind::mapping) {
    depth = 1;
    table.reserve(pairs.size());
    for (auto& [key, value] : pairs) {
      if (!hashable(key)) fail("'", type_name(key), "' cannot be the key of a mapping");
      include(*this, key);
      include(*this, value);
      table.set(std::move(key), std::move(value));
    }
    check_depth(*this);
  }

  [[nodiscard]] const Value* find(const Value& key) const { return table.find(key); }

  Table table;
};

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

inline Value Value::mapping(Entries entries) {
  return Value(std::make_shared<const detail::Mapping>(std::move(entries)));
}

inline const Value::Entries& Value::entries() const& { return as<detail::Mapping>().table.entries(); }

inline const Value* Value::find(std::string_view key) const& {
  return is(Kind::mapping) ? as<detail::Mapping>().find(Value(key)) : nullptr;
}

}  // namespace mica::jinja
