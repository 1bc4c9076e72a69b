// SPDX-License-Identifier: Apache-2.0
//
// The text that a string literal stands for: Python's escapes.
#pragma once

#include "mica_jinja/detail/lexer.hpp"
#include "mica_jinja/detail/unicode.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace mica::jinja::detail {

/// Reads the escapes of one literal: a letter, or \x, \u and \U with two, four and eight hexadecimal digits.
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
      put(digits(2));
    } else if (letter == 'u') {
      put(digits(4));
    } else if (letter == 'U') {
      put(digits(8));
    } else if (letter == 'N' || (letter >= '0' && letter <= '7')) {
      syntax_error(line_, join("the escape '\\", letter, "' is not supported"));
    } else if (letter != '\n') {
      out_.push_back('\\');
      out_.push_back(letter);
    }
  }

  [[nodiscard]] char32_t digits(std::size_t count) {
    char32_t value = 0;
    for (; count > 0; --count, ++at_) {
      const char c = at_ < text_.size() ? text_[at_] : '\0';
      const std::size_t digit =
          std::string_view("0123456789abcdef").find(c >= 'A' && c <= 'F' ? static_cast<char>(c + 32) : c);
      if (digit == std::string_view::npos) syntax_error(line_, "an escape in this string lacks digits");
      value = value * 16 + static_cast<char32_t>(digit);
    }
    return value;
  }

  void put(char32_t value) {
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
