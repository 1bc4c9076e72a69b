// SPDX-License-Identifier: Apache-2.0
//
// The tokens of one template, read one after the other, and the sentences for those that do not fit.
#pragma once

#include "mica_jinja/detail/lexer.hpp"
#include "mica_jinja/limits.hpp"
#include "mica_jinja/template_error.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::jinja::detail {

/// A cursor over tokens, which counts how deep the parser is.
class TokenStream {
 public:
  TokenStream(std::vector<Token> tokens, const Limits& limits)
      : tokens_(std::move(tokens)), deepest_(limits.nesting) {}

  /// Never moves past the token `end`.
  [[nodiscard]] const Token& current() const noexcept { return tokens_[at_]; }
  [[nodiscard]] const Token& following() const noexcept {
    return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_];
  }
  [[nodiscard]] std::uint32_t line() const noexcept { return current().line; }

  Token next() {
    const Token token = current();
    if (at_ + 1 < tokens_.size()) ++at_;
    return token;
  }

  [[nodiscard]] bool at(Token::Kind kind) const { return current().kind == kind; }
  [[nodiscard]] bool at_sign(std::string_view sign) const {
    return at(Token::Kind::sign) && current().text == sign;
  }
  [[nodiscard]] bool at_name(std::string_view name) const {
    return at(Token::Kind::name) && current().text == name;
  }

  [[nodiscard]] bool skip_sign(std::string_view sign) { return at_sign(sign) && (next(), true); }
  [[nodiscard]] bool skip_name(std::string_view name) { return at_name(name) && (next(), true); }

  void expect_sign(std::string_view sign) {
    if (!skip_sign(sign)) unexpected(join("'", sign, "'"));
  }
  void expect_name(std::string_view name) {
    if (!skip_name(name)) unexpected(join("'", name, "'"));
  }
  [[nodiscard]] std::string expect_any_name() {
    if (!at(Token::Kind::name)) unexpected("a name");
    return std::string(next().text);
  }
  void expect(Token::Kind kind, std::string_view what) {
    if (!at(kind)) unexpected(what);
    next();
  }

  /// Calls read() for each part up to a closing sign, with commas between them and perhaps behind the last.
  template <class Read>
  void each_until(std::string_view close, Read read) {
    while (!at_sign(close)) {
      read();
      if (!skip_sign(",")) break;
    }
    expect_sign(close);
  }

  [[noreturn]] void unexpected(std::string_view wanted) const {
    const std::string found = at(Token::Kind::end)    ? "the end of the template"
                              : at(Token::Kind::data) ? "text"
                                                      : join("'", escaped(current().text, 40), "'");
    syntax_error(line(), join("found ", found, " where ", wanted, " was expected"));
  }

  /// One level of brackets, blocks or operators; lives as long as the parser is inside of it.
  class Level {
   public:
    explicit Level(TokenStream& stream) : stream_(&stream) {
      if (++stream.depth_ <= stream.deepest_) return;
      --stream.depth_;
      throw TemplateError(TemplateError::Cause::limit, join("nested deeper than ", stream.deepest_),
                          stream.line());
    }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    ~Level() { --stream_->depth_; }

   private:
    TokenStream* stream_;
  };

 private:
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  std::uint32_t depth_ = 0;
  std::uint32_t deepest_;
};

}  // namespace mica::jinja::detail
