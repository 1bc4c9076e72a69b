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
#include <string_view>
#include <utility>
#include <vector>

namespace mica::gguf::detail {

/// The order of n names. It holds no names: every call passes `name_of(i)`, the same names each time.
class NameIndex {
 public:
  NameIndex() = default;
  /// Cost: n log n comparisons and 4 bytes a name. Requires n < 2^32.
  template <class NameOf>
  NameIndex(std::size_t n, const NameOf& name_of) : order_(n) {
    std::iota(order_.begin(), order_.end(), std::uint32_t{0});
    std::sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) {
      const int order = std::string_view(name_of(a)).compare(name_of(b));
      return order != 0 ? order < 0 : a < b;
    });
  }

  /// Where the name is in the list.
  template <class NameOf>
  [[nodiscard]] std::optional<std::size_t> find(std::string_view wanted, const NameOf& name_of) const {
    const auto at = std::lower_bound(
        order_.begin(), order_.end(), wanted,
        [&](std::uint32_t i, std::string_view name) { return std::string_view(name_of(i)) < name; });
    if (at == order_.end() || std::string_view(name_of(*at)) != wanted) return std::nullopt;
    return *at;
  }

  /// The places of a name that occurs twice.
  template <class NameOf>
  [[nodiscard]] std::optional<std::pair<std::size_t, std::size_t>> duplicate(const NameOf& name_of) const {
    const auto at = std::adjacent_find(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::string_view(name_of(a)) == std::string_view(name_of(b));
    });
    if (at == order_.end()) return std::nullopt;
    return std::pair<std::size_t, std::size_t>(*at, *(at + 1));
  }

 private:
  std::vector<std::uint32_t> order_;
};

}  // namespace mica::gguf::detail
