// SPDX-License-Identifier: Apache-2.0
//
// How the files of a sharded model are named: PREFIX-00001-of-00003.gguf, counted from one.
#pragma once

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

namespace mica::gguf {

/// The parts of a shard's path.
struct ShardName {
  std::string prefix;  ///< folder and name up to the number
  std::uint32_t number = 1;
  std::uint32_t count = 1;

  /// The parts of a path; empty when it does not look like a shard's.
  [[nodiscard]] static std::optional<ShardName> parse(std::string_view path) {
    constexpr std::string_view pattern = "-00000-of-00000.gguf";
    if (path.size() <= pattern.size()) return std::nullopt;
    const std::string_view suffix = path.substr(path.size() - pattern.size());
    ShardName name;
    const auto number = [&](std::size_t at, std::uint32_t& value) {
      return std::from_chars(suffix.data() + at, suffix.data() + at + 5, value).ptr == suffix.data() + at + 5;
    };
    if (!number(1, name.number) || !number(10, name.count)) return std::nullopt;
    name.prefix = path.substr(0, path.size() - pattern.size());
    if (name.path() != path || name.number < 1 || name.number > name.count) return std::nullopt;
    return name;
  }

  [[nodiscard]] std::string path() const {
    char suffix[48];
    std::snprintf(suffix, sizeof suffix, "-%05u-of-%05u.gguf", number, count);
    return prefix + suffix;
  }
  /// The path of another shard of the same model.
  [[nodiscard]] std::string path_of(std::uint32_t other) const {
    return ShardName{prefix, other, count}.path();
  }
};

}  // namespace mica::gguf
