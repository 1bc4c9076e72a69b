// SPDX-License-Identifier: Apache-2.0
//
// Template text to tokens. White space around tags is settled here: "-" and "+" beside a tag, and the two
// settings that Hugging Face uses, trim_blocks (the newline behind a block goes) and lstrip_blocks (the
// indent before it goes).
#pragma once

#include "mica_jinja/detail/unicode.hpp"
#include "mica_jinja/template_error.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::jinja::detail {

struct Token {
  enum class Kind : std::uint8_t {
    data,  ///< text between tags
    output_begin,
    output_end,
    block_begin,
    block_end,
    name,
    string,  ///< with its quotes and escapes
    integer,
    real,
    sign,  ///< operators and punctuation
    end,
  };

  Kind kind = Kind::end;
  std::uint32_t line = 1;
  std::string_view text;  ///< a piece of the source
};

[[noreturn]] inline void syntax_error(std::size_t line, std::string message) {
  throw TemplateError(TemplateError::Cause::syntax, std::move(message), line);
}

/// Line ends become "\n", and the very last one goes.
[[nodiscard]] inline std::string normalized(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r' && i + 1 < source.size() && source[i + 1] == '\n') continue;
    out.push_back(source[i] == '\r' ? '\n' : source[i]);
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

/// Cuts one template into tokens, which point into the source; the last token is `end`.
class Lexer {
 public:
  /// The source must be normalized().
  explicit Lexer(std::string_view source) : source_(source) {}

  [[nodiscard]] std::vector<Token> run() {
    while (at_ < source_.size()) data();
    add(Token::Kind::end, source_.substr(source_.size()));
    return std::move(tokens_);
  }

 private:
  [[nodiscard]] std::string_view rest() const { return source_.substr(at_); }

  void add(Token::Kind kind, std::string_view text) { tokens_.push_back({kind, line_, text}); }

  void advance(std::size_t count) {
    const std::string_view passed = source_.substr(at_, count);
    line_ += static_cast<std::uint32_t>(std::count(passed.begin(), passed.end(), '\n'));
    at_ += passed.size();
  }

  void skip_space() {
    advance(rest().size() - drop_front(rest(), [](char32_t c) { return is_space(c); }).size());
  }

  /// Offset of the next "{{", "{%" or "{#".
  [[nodiscard]] std::size_t next_tag() const {
    for (std::size_t at = source_.find('{', at_); at != std::string_view::npos;
         at = source_.find('{', at + 1)) {
      const char kind = at + 1 < source_.size() ? source_[at + 1] : '\0';
      if (kind == '{' || kind == '%' || kind == '#') return at;
    }
    return std::string_view::npos;
  }

  /// Text before a tag whose sign is `sign`, without the white space that the tag takes with it.
  [[nodiscard]] std::string_view before_tag(std::string_view text, char sign, bool is_output) const {
    if (sign == '-') return drop_back(text, [](char32_t c) { return is_space(c); });
    if (sign == '+' || is_output) return text;
    const std::size_t newline = text.rfind('\n');
    const bool whole_line = newline != std::string_view::npos || at_ == 0 || source_[at_ - 1] == '\n';
    if (!whole_line) return text;
    const std::size_t start = newline == std::string_view::npos ? 0 : newline + 1;
    const std::string_view indent = drop_front(text.substr(start), [](char32_t c) { return is_space(c); });
    return indent.empty() ? text.substr(0, start) : text;
  }

  [[nodiscard]] static char sign_at(std::string_view text, std::size_t at) {
    const char c = at < text.size() ? text[at] : '\0';
    return c == '-' || c == '+' ? c : '\0';
  }

  /// Text up to the next tag, and that tag.
  void data() {
    const std::size_t tag = next_tag();
    if (tag == std::string_view::npos) {
      add(Token::Kind::data, rest());
      return advance(rest().size());
    }
    const char kind = source_[tag + 1];
    const char sign = sign_at(source_, tag + 2);
    const std::string_view text = before_tag(source_.substr(at_, tag - at_), sign, kind == '{');
    if (!text.empty()) add(Token::Kind::data, text);
    advance(tag - at_ + (sign == '\0' ? 2 : 3));
    if (kind == '#') return comment();
    if (kind == '{') return code(Token::Kind::output_begin, Token::Kind::output_end, "}}");
    if (raw_opening()) return raw();
    code(Token::Kind::block_begin, Token::Kind::block_end, "%}");
  }

  /// Behind the end of a block or comment: "-" takes all white space, no sign takes one newline.
  void after_tag(char sign) {
    if (sign == '-') return skip_space();
    if (sign == '\0' && rest().starts_with('\n')) advance(1);
  }

  void comment() {
    const std::size_t end = source_.find("#}", at_);
    if (end == std::string_view::npos) syntax_error(line_, "this comment has no end '#}'");
    const char sign = end > at_ ? sign_at(source_, end - 1) : '\0';
    advance(end + 2 - at_);
    after_tag(sign);
  }

  /// Takes "raw %}" if it is what follows.
  [[nodiscard]] bool raw_opening() {
    std::string_view text = drop_front(rest(), [](char32_t c) { return is_space(c); });
    if (!text.starts_with("raw")) return false;
    text = drop_front(text.substr(3), [](char32_t c) { return is_space(c); });
    const bool trims = text.starts_with("-%}");
    if (!trims && !text.starts_with("%}")) return false;
    advance(rest().size() - text.size() + (trims ? 3 : 2));
    if (trims) skip_space();
    return true;
  }

  /// Length of "endraw %}" at `at`, with its sign; 0 when it is not there.
  [[nodiscard]] std::size_t raw_closing(std::size_t at, char& sign) const {
    std::string_view text = drop_front(source_.substr(at), [](char32_t c) { return is_space(c); });
    if (!text.starts_with("endraw")) return 0;
    text = drop_front(text.substr(6), [](char32_t c) { return is_space(c); });
    sign = sign_at(text, 0);
    if (sign != '\0') text.remove_prefix(1);
    return text.starts_with("%}") ? source_.size() - at - text.size() + 2 : 0;
  }

  void raw() {
    for (std::size_t tag = source_.find("{%", at_); tag != std::string_view::npos;
         tag = source_.find("{%", tag + 2)) {
      const char open_sign = sign_at(source_, tag + 2);
      const std::size_t name = tag + (open_sign == '\0' ? 2 : 3);
      char close_sign = '\0';
      const std::size_t length = raw_closing(name, close_sign);
      if (length == 0) continue;
      const std::string_view text = before_tag(source_.substr(at_, tag - at_), open_sign, false);
      if (!text.empty()) add(Token::Kind::data, text);
      advance(name + length - at_);
      return after_tag(close_sign);
    }
    syntax_error(line_, "this raw block has no end '{% endraw %}'");
  }

  /// Takes the end of a tag if it is what follows.
  [[nodiscard]] bool closing(std::string_view close, Token::Kind kind) {
    const bool is_block = kind == Token::Kind::block_end;
    char sign = sign_at(rest(), 0);
    if (sign == '+' && !is_block) sign = '\0';
    const std::size_t length = sign == '\0' ? 0 : 1;
    if (!rest().substr(length).starts_with(close)) return false;
    add(kind, rest().substr(0, length + close.size()));
    advance(length + close.size());
    if (is_block || sign == '-') after_tag(sign);
    return true;
  }

  void code(Token::Kind begin, Token::Kind end, std::string_view close) {
    const std::uint32_t start = line_;
    add(begin, close);
    std::string open;  // closing brackets that are still to come
    for (;;) {
      skip_space();
      if (rest().empty()) syntax_error(start, join("this tag has no end '", close, "'"));
      if (open.empty() && closing(close, end)) return;
      token(open);
    }
  }

  [[nodiscard]] static bool starts_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           static_cast<unsigned char>(c) >= 0x80;
  }

  [[nodiscard]] static bool is_digit_char(char c) { return c >= '0' && c <= '9'; }

  void take(Token::Kind kind, std::size_t length) {
    add(kind, rest().substr(0, length));
    advance(length);
  }

  void token(std::string& open) {
    const char c = rest().front();
    if (is_digit_char(c)) return number();
    if (c == '"' || c == '\'') return string(c);
    if (!starts_name(c)) return sign(open);
    std::size_t length = 1;
    while (length < rest().size() && (starts_name(rest()[length]) || is_digit_char(rest()[length]))) ++length;
    take(Token::Kind::name, length);
  }

  /// Digits, as many as there are from `at`.
  [[nodiscard]] std::size_t digits(std::size_t at) const {
    const std::string_view text = rest();
    while (at < text.size() && is_digit_char(text[at])) ++at;
    return at;
  }

  void number() {
    const std::string_view text = rest();
    const std::size_t whole = digits(0);
    const bool is_place =
        !tokens_.empty() && tokens_.back().text == "." && source_[at_ - 1] == '.';  // row.0.1
    const bool is_real =
        !is_place && whole + 1 < text.size() && text[whole] == '.' && is_digit_char(text[whole + 1]);
    take(is_real ? Token::Kind::real : Token::Kind::integer, is_real ? digits(whole + 1) : whole);
  }

  void string(char quote) {
    for (std::size_t i = 1; i < rest().size(); ++i) {
      if (rest()[i] == '\\') {
        ++i;
      } else if (rest()[i] == quote) {
        return take(Token::Kind::string, i + 1);
      }
    }
    syntax_error(line_, "this string has no end");
  }

  void sign(std::string& open) {
    static constexpr std::string_view pairs[] = {"//", "==", "!=", "<=", ">="};
    for (const std::string_view pair : pairs) {
      if (rest().starts_with(pair)) return take(Token::Kind::sign, 2);
    }
    const char c = rest().front();
    if (std::string_view("+-*/%~<>=.:|,;()[]{}").find(c) == std::string_view::npos)
      syntax_error(line_, join("found '", escaped(rest().substr(0, 1)), "', which means nothing here"));
    const std::size_t bracket = std::string_view("([{").find(c);
    if (bracket != std::string_view::npos) open.push_back(")]}"[bracket]);
    if (c == ')' || c == ']' || c == '}') {
      if (open.empty() || open.back() != c)
        syntax_error(line_, join("found '", c, "' without its opening bracket"));
      open.pop_back();
    }
    take(Token::Kind::sign, 1);
  }

  std::string_view source_;
  std::size_t at_ = 0;
  std::uint32_t line_ = 1;
  std::vector<Token> tokens_;
};

}  // namespace mica::jinja::detail
