// SPDX-License-Identifier: Apache-2.0
//
// Writing JSON: strings and numbers. Verbs that write flat objects need nothing more.
#pragma once

#include "mica/text/utf8.hpp"

#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>

namespace mica::program {

namespace detail {

/// Whether three bytes of a surrogate stand there, which UTF-8 forbids and the library lets through.
[[nodiscard]] inline bool surrogate_at(std::string_view text, std::size_t at) noexcept {
  return text[at] == '\xED' && at + 1 < text.size() && static_cast<unsigned char>(text[at + 1]) >= 0xA0;
}

}  // namespace detail

/// Whether the bytes can stand in JSON as they are: UTF-8 without surrogates.
[[nodiscard]] inline bool is_json_text(std::string_view text) noexcept {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (detail::surrogate_at(text, i)) return false;
  }
  return text::is_utf8(text);
}

/// `text` in quotes. What is not UTF-8 becomes U+FFFD.
[[nodiscard]] inline std::string json_string(std::string_view text) {
  constexpr char digits[] = "0123456789abcdef";
  const std::string repaired = text::repaired_utf8(text);
  std::string out = "\"";
  for (std::size_t i = 0; i < repaired.size(); ++i) {
    const auto byte = static_cast<unsigned char>(repaired[i]);
    if (detail::surrogate_at(repaired, i)) {
      out += text::replacement_character;
      i += 2;
    } else if (byte == '"' || byte == '\\') {
      out += {'\\', repaired[i]};
    } else if (byte == '\n') {
      out += "\\n";
    } else if (byte < 0x20 || byte == 0x7F) {
      out += {'\\', 'u', '0', '0', digits[byte >> 4], digits[byte & 15]};
    } else {
      out += repaired[i];
    }
  }
  return out + "\"";
}

/// A number with so many decimals, for JSON and for people; null when it is not finite.
[[nodiscard]] inline std::string fixed(double value, int decimals) {
  if (!std::isfinite(value)) return "null";
  char text[400];
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

/// The shortest decimal number that reads back as the same one; null when it is not finite.
[[nodiscard]] inline std::string shortest(double value) {
  if (!std::isfinite(value)) return "null";
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

}  // namespace mica::program
