// SPDX-License-Identifier: Apache-2.0
//
// Writing JSON: strings and numbers. Verbs that write flat objects need nothing more.
#pragma once

#include "mica/text/utf8.hpp"
#include "safe_text.hpp"

#include <algorithm>
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

/// \uNNNN for a character of one to three bytes.
[[nodiscard]] inline std::string escaped_unit(std::string_view character) {
  auto code = static_cast<unsigned>(static_cast<unsigned char>(character[0]));
  if (character.size() > 1) code &= character.size() == 2 ? 0x1Fu : 0x0Fu;
  for (const char next : character.substr(1)) code = code << 6 | (static_cast<unsigned char>(next) & 0x3Fu);
  char text[8];
  std::snprintf(text, sizeof text, "\\u%04x", code & 0xFFFFu);
  return text;
}

}  // namespace detail

/// Whether the bytes can stand in JSON as they are: UTF-8 without surrogates.
[[nodiscard]] inline bool is_json_text(std::string_view text) noexcept {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (detail::surrogate_at(text, i)) return false;
  }
  return text::is_utf8(text);
}

/// `text` in quotes. What is not UTF-8 becomes U+FFFD; control characters and controls of text direction
/// become \uNNNN.
[[nodiscard]] inline std::string json_string(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const Character c = first_character(text);
    const std::size_t bytes = std::max<std::size_t>(1, text::utf8_sequence_bytes(text));  // 3 of a surrogate
    if (!c.is_text) {
      out += text::replacement_character;
    } else if (text[0] == '"' || text[0] == '\\') {
      out += {'\\', text[0]};
    } else if (text[0] == '\n') {
      out += "\\n";
    } else if (c.is_control) {
      out += detail::escaped_unit(text.substr(0, bytes));
    } else {
      out += text.substr(0, bytes);
    }
    text.remove_prefix(bytes);
  }
  return out + "\"";
}

/// A number with `decimals` decimals, for JSON and for people; null when it is not finite.
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
