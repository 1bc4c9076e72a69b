// SPDX-License-Identifier: Apache-2.0
//
// The key-value pairs of a GGUF file. Values stay in the header; getters return a view or a checked number,
// and refuse a value of the wrong kind by the name of its key.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/gguf/value.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::gguf {

namespace detail {

/// The names of an object: name(object, i). A view.
struct NameList {
  const void* object;
  std::string_view (*name)(const void* object, std::size_t i);

  [[nodiscard]] std::string_view operator[](std::size_t i) const { return name(object, i); }
};

/// Those of a list whose elements have a `name`.
template <class T>
[[nodiscard]] NameList names_in(const std::vector<T>& list) noexcept {
  return {&list, [](const void* object, std::size_t i) -> std::string_view {
            return (*static_cast<const std::vector<T>*>(object))[i].name;
          }};
}

/// Finds n names by their place in a list, and names that occur twice. It holds no names: every call passes
/// the same list. Sorted rather than hashed: names come from files, and no choice of names makes a sort slow.
class NameIndex {
 public:
  NameIndex() = default;
  /// Cost: n log n comparisons and 4 bytes a name. Requires n < 2^32.
  NameIndex(std::size_t n, NameList names) : order_(n) {
    std::iota(order_.begin(), order_.end(), std::uint32_t{0});
    std::sort(order_.begin(), order_.end(), [names](std::uint32_t a, std::uint32_t b) {
      const int order = names[a].compare(names[b]);
      return order != 0 ? order < 0 : a < b;
    });
  }

  /// The places in the order of their names.
  [[nodiscard]] std::span<const std::uint32_t> order() const noexcept {
    return {order_.data(), order_.size()};
  }

  /// Where the name is in the list.
  [[nodiscard]] std::optional<std::size_t> find(std::string_view wanted, NameList names) const {
    const auto at =
        std::lower_bound(order_.begin(), order_.end(), wanted,
                         [names](std::uint32_t i, std::string_view name) { return names[i] < name; });
    if (at == order_.end() || names[*at] != wanted) return std::nullopt;
    return *at;
  }

  /// Two neighbours of order() that have the same name, by a pointer to the first; null: no name occurs twice.
  [[nodiscard]] const std::uint32_t* duplicate(NameList names) const& {
    for (std::size_t i = 1; i < order_.size(); ++i) {
      if (names[order_[i - 1]] == names[order_[i]]) return &order_[i - 1];
    }
    return nullptr;
  }
  const std::uint32_t* duplicate(NameList names) const&& = delete;

 private:
  std::vector<std::uint32_t> order_;
};

}  // namespace detail

/// Where one pair lies in the header. The value is whole and well formed.
struct MetadataEntry {
  std::uint32_t key_at;       // bytes from the first of the header
  std::uint32_t value_at;     // the same; behind the type of the value
  std::uint32_t value_bytes;  // with the lengths of its texts and arrays
  std::uint16_t key_bytes;    // of the text alone
  ValueType type;             // an array's elements have one of their own
};

/// All pairs of a file, in its order. Thread-safe after construction; move-only, and views survive a move.
class Metadata {
 public:
  Metadata() = default;
  /// `file` stands in error texts; `bytes` are the header, in `owned` or in memory of the caller that stays.
  /// Requires entries inside of the bytes. Raises ErrorCode::file when a key appears twice.
  Metadata(std::string file, std::span<const std::byte> bytes, std::vector<std::byte> owned,
           std::vector<MetadataEntry> entries)
      : file_(std::move(file)),
        owned_(std::move(owned)),
        bytes_(bytes),
        entries_(std::move(entries)),
        index_(entries_.size(), keys()) {
    if (const auto twice = index_.duplicate(keys())) {
      raise(ErrorCode::file, file_, ": key '", escaped(key(twice[0])),
            "' appears twice: ", value(twice[0]).description(), " and ", value(twice[1]).description());
    }
  }

  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
  /// Requires i < size().
  [[nodiscard]] std::string_view key(std::size_t i) const noexcept {
    MICA_ASSERT(i < size());
    return key(entries_[i]);
  }
  [[nodiscard]] Value value(std::size_t i) const noexcept {
    MICA_ASSERT(i < size());
    return {entries_[i].type, bytes_.subspan(entries_[i].value_at, entries_[i].value_bytes)};
  }

  /// The numbers of the pairs in the order of their keys.
  [[nodiscard]] std::span<const std::uint32_t> order() const noexcept { return index_.order(); }

  /// The value of a key; empty when the file has no such key.
  [[nodiscard]] std::optional<Value> find(std::string_view key) const noexcept {
    const auto at = index_.find(key, keys());
    if (!at) return std::nullopt;
    return value(*at);
  }
  [[nodiscard]] bool contains(std::string_view key) const noexcept { return find(key).has_value(); }

  /// The value of a key as T (see Value::as); empty when the file has no such key.
  /// Raises ErrorCode::file, with the key, what was found and what is needed, when the value is not a T.
  template <class T>
  [[nodiscard]] std::optional<T> get(std::string_view key) const {
    const auto found = find(key);
    if (!found) return std::nullopt;
    return read<T>(key, *found);
  }
  /// As get(), and raises ErrorCode::file when the file has no such key.
  template <class T>
  [[nodiscard]] T require(std::string_view key) const {
    const auto found = find(key);
    MICA_CHECK(found, file, file_, ": key '", key, "' is missing; needed: ", detail::Reads<T>::needed());
    return read<T>(key, *found);
  }
  /// One number for each of n layers: an array of n, or a single number repeated. Empty without such a key.
  /// Raises as get(), and when the array has not n elements.
  template <Number T>
  [[nodiscard]] std::vector<T> get_each(std::string_view key, std::size_t n) const {
    const auto found = find(key);
    if (!found) return {};
    if (!found->is_array()) return std::vector<T>(n, read<T>(key, *found));
    const auto array = read<Array<T>>(key, *found);
    MICA_CHECK(array.size() == n, file, file_, ": key '", key, "' is ", found->description(),
               "; needed: one number or ", n);
    std::vector<T> each(n, T{});
    for (std::size_t i = 0; i < n; ++i) each[i] = array[i];
    return each;
  }

  /// Removes the pairs whose keys begin with the prefix.
  void remove(std::string_view prefix) {
    std::size_t n = 0;
    for (const MetadataEntry& entry : entries_) {
      if (!key(entry).starts_with(prefix)) entries_[n++] = entry;
    }
    entries_.resize(n);
    index_ = detail::NameIndex(entries_.size(), keys());
  }

  /// The name of the file, for error texts about its contents.
  [[nodiscard]] const std::string& file() const noexcept { return file_; }
  /// Bytes this object keeps in memory.
  [[nodiscard]] std::size_t resident_bytes() const noexcept {
    return owned_.capacity() + entries_.capacity() * (sizeof(MetadataEntry) + sizeof(std::uint32_t));
  }

 private:
  template <class T>
  [[nodiscard]] T read(std::string_view key, const Value& value) const {
    MICA_CHECK(detail::Reads<T>::fits(value), file, file_, ": key '", key, "' is ", value.description(),
               "; needed: ", detail::Reads<T>::needed());
    return detail::Reads<T>::of(value);
  }
  [[nodiscard]] std::string_view key(const MetadataEntry& entry) const noexcept {
    return {reinterpret_cast<const char*>(bytes_.data()) + entry.key_at, entry.key_bytes};
  }
  [[nodiscard]] detail::NameList keys() const noexcept {
    return {this, [](const void* self, std::size_t i) { return static_cast<const Metadata*>(self)->key(i); }};
  }

  std::string file_;
  std::vector<std::byte> owned_;  // empty: the bytes belong to the caller
  std::span<const std::byte> bytes_;
  std::vector<MetadataEntry> entries_;
  detail::NameIndex index_;
};

}  // namespace mica::gguf
