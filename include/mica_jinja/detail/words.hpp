// SPDX-License-Identifier: Apache-2.0
//
// The words of error messages: parts joined to one text, and text of unknown origin made safe to show.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>

namespace mica::jinja::detail {

/// Joins texts, characters and numbers into one string.
template <class... Parts>
[[nodiscard]] std::string join(const Parts&... parts) {
  std::string out;
  const auto append = [&out](const auto& part) {
    using Part = std::decay_t<decltype(part)>;
    if constexpr (std::is_same_v<Part, char>) {
      out.push_back(part);
    } else if constexpr (std::is_arithmetic_v<Part>) {
      out += std::to_string(part);
    } else {
      out += part;
    }
  };
  (append(parts), ...);
  return out;
}

/// Safe for a terminal and a log: control bytes, backslashes and bytes above 0x7E become \xNN; at most
/// `limit` bytes are shown.
[[nodiscard]] inline std::string escaped(std::string_view text, std::size_t limit = 80) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  for (const char c : text.substr(0, limit)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7F && c != '\\') {
      out.push_back(c);
    } else {
      out += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
    }
  }
  if (text.size() > limit) out += "...";
  return out;
}

}  // namespace mica::jinja::detail
