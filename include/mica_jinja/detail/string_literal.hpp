// SPDX-License-Identifier: Apache-2.0
//
// The text that a string literal stands for: Python's escapes.
#pragma once

#include "mica_jinja/detail/lexer.hpp"
#include "mica_jinja/detail/unicode.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace mica::jinja::detail {

/// Reads the escapes of one literal. Halves of a surrogate pair become the character they mean.
class StringLiteral {
 public:
  /// The token's text, with its quotes.
  explicit StringLiteral(const Token& token)
      : text_(token.text.substr(1, token.text.size() - 2)), line_(token.line) {}

  [[nodiscard]] std::string read() {
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c == '\\' && at_ < text_.size()) {
        escape(text_[at_++]);
      } else {
        out_.push_back(c);
      }
    }
    return std::move(out_);
  }

 private:
  void escape(char letter) {
    static constexpr std::string_view letters = "abfnrtv\\'\"";
    static constexpr std::string_view meanings = "\a\b\f\n\r\t\v\\'\"";
    const std::size_t known = letters.find(letter);
    if (known != std::string_view::npos) {
      out_.push_back(meanings[known]);
    } else if (letter == 'x') {
      put(digits(2, 16));
    } else if (letter == 'u') {
      put(digits(4, 16));
    } else if (letter == 'U') {
      put(digits(8, 16));
    } else if (letter >= '0' && letter <= '7') {
      --at_;
      put(octal());
    } else if (letter == 'N') {
      syntax_error(line_, "characters by name (\\N{...}) are not known");
    } else if (letter != '\n') {
      out_.push_back('\\');
      out_.push_back(letter);
    }
  }

  [[nodiscard]] char32_t digits(std::size_t count, char32_t base) {
    char32_t value = 0;
    for (; count > 0; --count, ++at_) {
      const std::size_t digit =
          at_ < text_.size() ? std::string_view("0123456789abcdef").find(low(text_[at_])) : 16;
      if (digit >= base) syntax_error(line_, "an escape in this string lacks digits");
      value = value * base + static_cast<char32_t>(digit);
    }
    return value;
  }

  [[nodiscard]] char32_t octal() {
    char32_t value = 0;
    for (int i = 0; i < 3 && at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '7'; ++i)
      value = value * 8 + digits(1, 8);
    return value;
  }

  [[nodiscard]] static char low(char c) { return c >= 'A' && c <= 'F' ? static_cast<char>(c + 32) : c; }

  void put(char32_t value) {
    if (value >= 0xD800 && value < 0xDC00 && text_.substr(at_).starts_with("\\u")) {
      at_ += 2;
      const char32_t second = digits(4, 16);
      if (second >= 0xDC00 && second < 0xE000) value = 0x10000 + ((value - 0xD800) << 10) + (second - 0xDC00);
    }
    if (value > 0x10FFFF || (value >= 0xD800 && value < 0xE000))
      syntax_error(line_, "an escape in this string is no character");
    append_code_point(out_, value);
  }

  std::string_view text_;
  std::size_t line_;
  std::size_t at_ = 0;
  std::string out_;
};

}  // namespace mica::jinja::detail
