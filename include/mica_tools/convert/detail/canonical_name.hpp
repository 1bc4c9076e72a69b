// SPDX-License-Identifier: Apache-2.0
//
// The name of a tensor without what its container added, and with # for its numbers, as the tables of
// families have it.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mica::convert::detail {

/// A name taken apart.
struct CanonicalName {
  std::string pattern;
  std::optional<std::uint64_t> layer, part;

  explicit CanonicalName(std::string_view name) {
    for (const std::string_view prefix : {"model.", "language_model.", "model."}) {
      if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
    }
    while (!name.empty()) {
      const std::size_t end = std::min(name.find('.'), name.size());
      add(name.substr(0, end));
      name.remove_prefix(std::min(end + 1, name.size()));
    }
  }

  /// A name of the same layer.
  [[nodiscard]] std::string fill(std::string_view to) const {
    std::string out(to);
    const std::size_t at = out.find('#');
    if (at != out.npos && layer) out.replace(at, 1, std::to_string(*layer));
    return out;
  }

 private:
  void add(std::string_view word) {
    if (!pattern.empty()) pattern += '.';
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (word.empty() || error != std::errc() || end != word.data() + word.size()) {
      pattern += word;
      return;
    }
    (pattern == "layers." ? layer : part) = number;
    pattern += '#';
  }
};

}  // namespace mica::convert::detail
