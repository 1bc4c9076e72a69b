// SPDX-License-Identifier: Apache-2.0
//
// Values in small files of the kernel and of drivers.
#pragma once

#include "mica/budget/detail/cgroup.hpp"

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace mica::advice::detail {

/// The first line of a file without its end; empty if it cannot be read.
[[nodiscard]] inline std::string first_line(const std::string& path) {
  const auto text = budget::detail::read_text(path);
  if (!text) return {};
  std::string_view rest = *text;
  return std::string(budget::detail::take_until(rest, '\n'));
}

/// The text after `key` at the beginning of a line, without blanks around it.
[[nodiscard]] inline std::string value_of(std::string_view text, std::string_view key) {
  constexpr std::string_view blanks = " \t\r";
  while (!text.empty()) {
    std::string_view line = budget::detail::take_until(text, '\n');
    if (!line.starts_with(key)) continue;
    line.remove_prefix(key.size());
    const std::size_t begin = line.find_first_not_of(blanks), end = line.find_last_not_of(blanks);
    return begin == line.npos ? std::string() : std::string(line.substr(begin, end + 1 - begin));
  }
  return {};
}

/// A hexadecimal number, with 0x or without; empty if the text begins with none.
[[nodiscard]] inline std::optional<std::uint64_t> hex_number(std::string_view text) noexcept {
  if (text.starts_with("0x")) text.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc{}) return std::nullopt;
  return value;
}

}  // namespace mica::advice::detail
