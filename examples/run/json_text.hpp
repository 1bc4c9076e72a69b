// SPDX-License-Identifier: Apache-2.0
//
// A JSON string literal. Verbs that write small flat objects need nothing more.
#pragma once

#include <string>
#include <string_view>

namespace mica::program {

/// `text` in quotes. It must be valid UTF-8.
[[nodiscard]] inline std::string json_text(std::string_view text) {
  constexpr char digits[] = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (c == '\n') {
      out += "\\n";
    } else if (byte < 0x20 || byte == 0x7F) {
      out += {'\\', 'u', '0', '0', digits[byte >> 4], digits[byte & 15]};
    } else {
      out += c;
    }
  }
  return out + "\"";
}

}  // namespace mica::program
