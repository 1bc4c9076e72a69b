// SPDX-License-Identifier: Apache-2.0
//
// Reads JSON that one program writes: its keys in one order, strings without escapes, whole numbers. What is different is refused
// with its place, so nothing needs to be built or remembered on the way. Not for JSON of others.
#pragma once

#include "mica/base/assert.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace mica::gguf::detail {

class JsonScanner {
 public:
  /// `name` stands for the text in errors; the text outlives the scanner.
  JsonScanner(std::string name, std::string_view text) : name_(std::move(name)), text_(text) {}

  /// The next character that is no blank must be this one.
  void expect(char c) {
    if (!next_is(c)) refuse("'", std::string(1, c), "' is needed");
    ++at_;
  }
  [[nodiscard]] bool next_is(char c) noexcept {
    while (at_ < text_.size() && std::string_view(" \n\r\t").find(text_[at_]) != std::string_view::npos)
      ++at_;
    return at_ < text_.size() && text_[at_] == c;
  }
  /// Goes on after a comma; false where there is none.
  [[nodiscard]] bool comma() noexcept { return next_is(',') && ++at_ != 0; }

  /// `"name":`, which names values in errors from here on.
  void key(std::string_view name) {
    key_ = name;
    if (text() != name) refuse("key '", name, "' is needed");
    expect(':');
  }
  /// The same behind a comma.
  void next_key(std::string_view name) {
    expect(',');
    key(name);
  }
  /// A string of printable ASCII without quotes and backslashes.
  [[nodiscard]] std::string_view text();
  [[nodiscard]] std::uint64_t number();
  /// Sixteen hexadecimal digits in a string.
  [[nodiscard]] std::uint64_t hex();
  /// Calls f() for each element of an array, before which it stands.
  template <class F>
  void list(F&& f) {
    expect('[');
    if (next_is(']')) return expect(']');
    do f();
    while (comma());
    expect(']');
  }
  /// Nothing may follow.
  void end() {
    if (static_cast<void>(next_is(' ')), at_ != text_.size()) refuse("nothing more is needed");
  }

  /// Where the scanner stands, in bytes.
  [[nodiscard]] std::size_t at() const noexcept { return at_; }
  template <class... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    raise(ErrorCode::file, name_, ": byte ", at_, ", key '", key_, "': found '",
          escaped(text_.substr(std::min(at_, text_.size())), 16), "'; ", parts...,
          "; the manifest is damaged or was edited: pack the model again");
  }

 private:
  std::string name_;
  std::string_view text_;
  std::string_view key_;
  std::size_t at_ = 0;
};

inline std::string_view JsonScanner::text() {
  expect('"');
  const std::size_t begin = at_;
  for (; at_ < text_.size() && text_[at_] != '"'; ++at_) {
    const auto byte = static_cast<unsigned char>(text_[at_]);
    if (byte < 0x20 || byte > 0x7E || byte == '\\') refuse("a string of printable ASCII is needed");
  }
  expect('"');
  return text_.substr(begin, at_ - 1 - begin);
}

inline std::uint64_t JsonScanner::number() {
  static_cast<void>(next_is(' '));
  std::uint64_t value = 0;
  const char* const first = text_.data() + at_;
  const auto [end, error] = std::from_chars(first, text_.data() + text_.size(), value);
  if (error != std::errc()) refuse("a whole number below 2^64 is needed");
  at_ += static_cast<std::size_t>(end - first);
  return value;
}

inline std::uint64_t JsonScanner::hex() {
  const std::string_view digits = text();
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  if (error != std::errc() || digits.size() != 16 || end != digits.data() + 16)
    refuse("sixteen hexadecimal digits are needed, not '", escaped(digits, 20), "'");
  return value;
}

}  // namespace mica::gguf::detail
