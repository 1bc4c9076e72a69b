// SPDX-License-Identifier: Apache-2.0
//
// Keys and values in the order in which they came: what mappings, namespaces and scopes are made of.
#pragma once

#include "mica_jinja/detail/object.hpp"
#include "mica_jinja/template_error.hpp"
#include "mica_jinja/value.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

namespace mica::jinja::detail {

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

inline Value Value::mapping(Entries entries) {
  return Value(std::make_shared<const detail::Mapping>(std::move(entries)));
}

inline const Value::Entries& Value::entries() const& { return as<detail::Mapping>().table.entries(); }

inline const Value* Value::find(std::string_view key) const& {
  return is(Kind::mapping) ? as<detail::Mapping>().find(Value(key)) : nullptr;
}

}  // namespace mica::jinja
