// SPDX-License-Identifier: Apache-2.0
//
// Bracketed paste: on request a terminal puts marks around pasted text, so that all lines of a paste are one
// text.
//
//   ESC [200~ first line CR second line ESC [201~
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace mica::program {

inline constexpr std::string_view paste_on = "\x1b[?2004h", paste_off = "\x1b[?2004l";  // begin, end
inline constexpr std::string_view paste_begin = "\x1b[200~", paste_end = "\x1b[201~";

/// Pasted characters as text: line breaks become "\n", other control characters but tabs are left out, and so
/// are line breaks at the end.
template <class Text>
[[nodiscard]] Text cleaned_paste(const Text& pasted) {
  Text out;
  for (std::size_t i = 0; i < pasted.size(); ++i) {
    const auto c = pasted[i];
    const bool has_feed = i + 1 < pasted.size() && pasted[i + 1] == '\n';
    if (c == '\r') {
      if (!has_feed) out += '\n';
    } else if (c == '\n' || c == '\t' || (c >= 0x20 && c != 0x7F) || c < 0) {  // below 0: a byte of UTF-8
      out += c;
    }
  }
  while (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

/// A line that may contain the beginning of a paste, with the rest of that paste: lines up to its end mark,
/// from next_line(), which returns an optional. Without a mark the line itself.
template <class NextLine>
[[nodiscard]] std::string with_paste(std::string line, NextLine&& next_line) {
  std::string out;
  for (std::size_t at = 0; (at = line.find(paste_begin)) != std::string::npos;) {
    out.append(line, 0, at);
    line.erase(0, at + paste_begin.size());
    std::size_t end = 0;
    while ((end = line.find(paste_end)) == std::string::npos) {
      const std::optional<std::string> next = next_line();
      if (!next) return out + cleaned_paste(line);
      line.append("\n").append(*next);
    }
    out += cleaned_paste(line.substr(0, end));
    line.erase(0, end + paste_end.size());
  }
  return out + line;
}

}  // namespace mica::program
