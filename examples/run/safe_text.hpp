// SPDX-License-Identifier: Apache-2.0
//
// Text of unknown origin made safe for a terminal: control bytes, the controls of text direction and bytes
// that are not UTF-8 appear as \xNN, everything else as it is. Names, keys and values of a file reach a
// terminal through here.
#pragma once

#include "mica/text/utf8.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace mica::program {

/// The longest word (a run without blanks) and the longest line of a message; longer ones are
/// shortened in the middle.
inline constexpr std::size_t max_word_bytes = 512, max_line_bytes = 2048;

/// One character at the beginning of a text.
struct Character {
  std::size_t bytes = 0;  // 1 for a byte that is not UTF-8
  bool is_text = false;   // UTF-8 and no surrogate
  bool is_control =
      false;  // C0, DEL, C1, or a control of text direction (U+202A to U+202E, U+2066 to U+2069)
};

/// The first character of a text that is not empty.
[[nodiscard]] constexpr Character first_character(std::string_view text) noexcept {
  const std::size_t bytes = text::utf8_sequence_bytes(text);
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (bytes == 0 || (bytes == 3 && byte(0) == 0xED && byte(1) >= 0xA0)) return {1, false, false};
  if (bytes == 1) return {1, true, byte(0) < 0x20 || byte(0) == 0x7F};
  if (bytes == 2) return {2, true, byte(0) == 0xC2 && byte(1) < 0xA0};
  const bool turns = bytes == 3 && byte(0) == 0xE2 &&
                     ((byte(1) == 0x80 && byte(2) >= 0xAA && byte(2) <= 0xAE) ||
                      (byte(1) == 0x81 && byte(2) >= 0xA6 && byte(2) <= 0xA9));
  return {bytes, true, turns};
}

/// The text for a terminal. Characters of `kept`, such as "\n\t", stay.
[[nodiscard]] inline std::string printable(std::string_view text, std::string_view kept = "\n\t") {
  constexpr char digits[] = "0123456789abcdef";
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Character c = first_character(text);
    if (c.is_text && (!c.is_control || kept.find(text[0]) != std::string_view::npos)) {
      out.append(text.substr(0, c.bytes));
    } else {
      for (const char raw : text.substr(0, c.bytes)) {
        const auto byte = static_cast<unsigned char>(raw);
        out += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
      }
    }
    text.remove_prefix(c.bytes);
  }
  return out;
}

namespace detail {

/// The nearest place at or before `at` that is inside neither a character nor a \xNN.
[[nodiscard]] inline std::size_t cut_before(std::string_view text, std::size_t at) noexcept {
  while (at > 0 && at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  for (std::size_t back = 1; back <= 3 && back <= at; ++back) {
    if (text.substr(at - back).starts_with("\\x")) return at - back;
  }
  return at;
}

/// The text, or its first three quarters and its last quarter of `limit` bytes.
[[nodiscard]] inline std::string without_middle(std::string_view text, std::size_t limit) {
  if (text.size() <= limit) return std::string(text);
  const std::size_t first = cut_before(text, limit / 4 * 3);
  const std::size_t last = cut_before(text, text.size() - limit / 4);
  return std::string(text.substr(0, first)) + "..." + std::string(text.substr(last));
}

}  // namespace detail

/// printable() for a message: words and lines that are too long are shortened in the middle, so that the
/// sentence around a long name can be read.
[[nodiscard]] inline std::string message_text(std::string_view text, std::string_view kept = "\n\t") {
  const std::string safe = printable(text, kept);
  std::string out, line;
  const auto end_line = [&] { out += detail::without_middle(std::exchange(line, {}), max_line_bytes); };
  for (std::size_t at = 0; at < safe.size();) {
    const std::size_t end = std::min(safe.find_first_of(" \n\t", at), safe.size());
    line += detail::without_middle(std::string_view(safe).substr(at, end - at), max_word_bytes);
    if (end == safe.size()) break;
    if (safe[end] == '\n') end_line();
    (safe[end] == '\n' ? out : line) += safe[end];
    at = end + 1;
  }
  end_line();
  return out;
}

/// A name, key or value in one line of a table: no line breaks, no tabs, bounded.
[[nodiscard]] inline std::string cell_text(std::string_view text) { return message_text(text, {}); }

}  // namespace mica::program
