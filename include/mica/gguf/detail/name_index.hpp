// SPDX-License-Identifier: Apache-2.0
//
// Finds names by their place in a list, and names that occur twice. Sorted rather than hashed: names come
// from files, and no choice of names makes a sort slow.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::gguf::detail {

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

/// The order of n names. It holds no names: every call passes the same list.
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
  [[nodiscard]] std::span<const std::uint32_t> order() const noexcept { return order_; }

  /// Where the name is in the list.
  [[nodiscard]] std::optional<std::size_t> find(std::string_view wanted, NameList names) const {
    const auto at =
        std::lower_bound(order_.begin(), order_.end(), wanted,
                         [names](std::uint32_t i, std::string_view name) { return names[i] < name; });
    if (at == order_.end() || names[*at] != wanted) return std::nullopt;
    return *at;
  }

  /// The places of a name that occurs twice.
  [[nodiscard]] std::optional<std::pair<std::size_t, std::size_t>> duplicate(NameList names) const {
    for (std::size_t i = 1; i < order_.size(); ++i) {
      if (names[order_[i - 1]] == names[order_[i]])
        return std::pair<std::size_t, std::size_t>(order_[i - 1], order_[i]);
    }
    return std::nullopt;
  }

 private:
  std::vector<std::uint32_t> order_;
};

}  // namespace mica::gguf::detail
