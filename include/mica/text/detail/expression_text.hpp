// SPDX-License-Identifier: Apache-2.0
//
// Changes to expressions and text before PCRE2 reads them: its white space differs, and it takes no
// surrogates.
#pragma once

#include "mica/text/utf8.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace mica::text::detail {

/// White_Space of Unicode as the inside of a character class.
inline constexpr std::string_view white_space =
    R"(\t-\r \x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";

/// The expression with `\s` and `\S` written out, because PCRE2's own have another white space: ASCII's, or
/// one with U+180E. `\S` stands outside of classes only, as it does in all rules.
inline std::string with_unicode_spaces(std::string_view expression) {
  std::string out;
  bool in_class = false;
  for (std::size_t i = 0; i < expression.size(); ++i) {
    const char c = expression[i];
    const char next = i + 1 < expression.size() ? expression[i + 1] : '\0';
    if (c == '\\' && (next == 's' || next == 'S')) {
      if (!in_class) out.append(next == 's' ? "[" : "[^");
      out.append(white_space);
      if (!in_class) out.push_back(']');
      ++i;
    } else if (c == '\\') {
      out.append({c, next});
      ++i;
    } else {
      in_class = c == '[' || (in_class && c != ']');
      out.push_back(c);
    }
  }
  return out;
}

/// The text with each surrogate replaced by U+FFFD, which has as many bytes; PCRE2 takes no surrogates.
inline std::string without_surrogates(std::string_view text) {
  std::string out(text);
  for (std::size_t at = out.find('\xED'); at != std::string::npos; at = out.find('\xED', at + 1)) {
    if (static_cast<unsigned char>(out[at + 1]) >= 0xA0) out.replace(at, 3, replacement_character);
  }
  return out;
}

}  // namespace mica::text::detail
