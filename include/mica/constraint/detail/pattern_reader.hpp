// SPDX-License-Identifier: Apache-2.0
//
// Reads the text of a pattern or a grammar from the left. It knows characters and numbers, and no syntax.
#pragma once

#include "mica/base/error.hpp"
#include "mica/constraint/expressions.hpp"
#include "mica/text/utf8.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mica::constraint::detail {

/// The value of a hexadecimal digit, or 16.
[[nodiscard]] constexpr std::uint32_t hex_value(char c) noexcept {
  if (c >= '0' && c <= '9') return static_cast<std::uint32_t>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<std::uint32_t>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<std::uint32_t>(c - 'A' + 10);
  return 16;
}
[[nodiscard]] constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

/// Adds a code point as UTF-8.
inline void append_utf8(std::uint32_t code_point, std::string& out) {
  const auto add = [&](std::uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  const int more = code_point < 0x80 ? 0 : code_point < 0x800 ? 1 : code_point < 0x10000 ? 2 : 3;
  constexpr std::uint32_t leads[] = {0, 0xC0, 0xE0, 0xF0};
  add(leads[more] | code_point >> (6 * more));
  for (int i = more - 1; i >= 0; --i) add(0x80 | (code_point >> (6 * i) & 0x3F));
}

/// The beginning of a text as a message shows it: as escaped(), but a backslash is one.
[[nodiscard]] inline std::string shown(std::string_view text, std::size_t limit = 60) {
  std::string out;
  for (const char c : text.substr(0, limit)) out += c == '\\' ? "\\" : escaped(std::string_view(&c, 1));
  return text.size() > limit ? out + "..." : out;
}

/// A text, and the position up to which it was read. The text outlives it.
class PatternReader {
 public:
  explicit PatternReader(std::string_view text) noexcept : text_(text) {}

  [[nodiscard]] std::size_t pos() const noexcept { return pos_; }  // in bytes
  void seek(std::size_t pos) noexcept { pos_ = pos; }
  [[nodiscard]] bool done() const noexcept { return pos_ == text_.size(); }
  [[nodiscard]] std::string_view text() const noexcept { return text_; }
  [[nodiscard]] std::string_view left() const noexcept { return text_.substr(pos_); }
  /// The byte that is `ahead` bytes further; 0 behind the end.
  [[nodiscard]] char peek(std::size_t ahead = 0) const noexcept {
    return pos_ + ahead < text_.size() ? text_[pos_ + ahead] : '\0';
  }
  /// Steps over a text, if it is next.
  [[nodiscard]] bool take(std::string_view expected) noexcept {
    if (!left().starts_with(expected)) return false;
    pos_ += expected.size();
    return true;
  }

  /// The next character; nothing, and no step, at the end or where the text is not UTF-8.
  [[nodiscard]] std::optional<std::uint32_t> character() noexcept {
    const std::size_t n = text::utf8_sequence_bytes(left());
    if (n == 0) return std::nullopt;
    std::uint32_t out = static_cast<std::uint8_t>(peek());
    if (n > 1) out &= 0x7FU >> n;
    for (std::size_t i = 1; i < n; ++i) out = out << 6 | (static_cast<std::uint8_t>(peek(i)) & 0x3FU);
    pos_ += n;
    return out;
  }
  /// Exactly n hexadecimal digits; nothing, and no step, where others are next.
  [[nodiscard]] std::optional<std::uint32_t> hex(std::size_t n) noexcept {
    std::uint32_t out = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint32_t digit = hex_value(peek(i));
      if (digit == 16) return std::nullopt;
      out = out << 4 | digit;
    }
    pos_ += n;
    return out;
  }
  /// Decimal digits; Expressions::unlimited for a number that is not smaller. Nothing where no digit is next.
  [[nodiscard]] std::optional<std::uint32_t> number() noexcept {
    if (!is_digit(peek())) return std::nullopt;
    std::uint64_t out = 0;
    for (; is_digit(peek()); ++pos_) {
      out = out * 10 + static_cast<std::uint64_t>(peek() - '0');
      if (out > Expressions::unlimited) out = Expressions::unlimited;
    }
    return static_cast<std::uint32_t>(out);
  }

 private:
  std::string_view text_;
  std::size_t pos_ = 0;
};

}  // namespace mica::constraint::detail
