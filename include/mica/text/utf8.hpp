// SPDX-License-Identifier: Apache-2.0
//
// UTF-8 as tokenizers need it: step over characters, repair text from outside, and hold back the half of a
// character that a token may end with. Not a Unicode library.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace mica::text {

/// U+FFFD, which stands for bytes that are not UTF-8.
inline constexpr std::string_view replacement_character = "\xEF\xBF\xBD";

/// Bytes that a sequence with this first byte claims to have, 1 to 4; stray continuation bytes count as one.
constexpr std::size_t utf8_claimed_bytes(char lead) noexcept {
  const auto byte = static_cast<unsigned char>(lead);
  if (byte < 0xC0) return 1;
  return byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

/// Bytes of the well-formed sequence at the beginning of the text, 0 when there is none.
/// Overlong forms and numbers above U+10FFFF are malformed; surrogates are let through, they have one
/// spelling.
constexpr std::size_t utf8_sequence_bytes(std::string_view text) noexcept {
  if (text.empty()) return 0;
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return 1;
  if (lead < 0xC2 || lead > 0xF4) return 0;
  const std::size_t n = utf8_claimed_bytes(text[0]);
  if (text.size() < n) return 0;
  for (std::size_t i = 1; i < n; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) return 0;
  }
  const auto second = static_cast<unsigned char>(text[1]);
  if ((lead == 0xE0 && second < 0xA0) || (lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F))
    return 0;
  return n;
}

/// Whether the text needs no repair.
constexpr bool is_utf8(std::string_view text) noexcept {
  while (!text.empty()) {
    const std::size_t n = utf8_sequence_bytes(text);
    if (n == 0) return false;
    text.remove_prefix(n);
  }
  return true;
}

/// The text with one U+FFFD for each byte that belongs to no well-formed sequence.
inline std::string repaired_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size() + text.size() / 8);
  while (!text.empty()) {
    const std::size_t n = utf8_sequence_bytes(text);
    out.append(n == 0 ? replacement_character : text.substr(0, n));
    text.remove_prefix(n == 0 ? 1 : n);
  }
  return out;
}

/// The text where it needs no repair, else the repaired one, which `storage` then holds.
inline std::string_view as_utf8(std::string_view text, std::string& storage) {
  return is_utf8(text) ? text : storage = repaired_utf8(text);
}

/// Bytes at the end of the text that begin a character without finishing it: 0 to 3.
constexpr std::size_t utf8_unfinished_bytes(std::string_view text) noexcept {
  for (std::size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if (byte >= 0xF5 || (byte & 0xC0) != 0x80)
      return byte >= 0xC2 && byte < 0xF5 && utf8_claimed_bytes(text[text.size() - back]) > back ? back : 0;
  }
  return 0;
}

/// Passes on the bytes of a text that arrives in pieces, but never the first half of a character. One thread
/// at a time.
class Utf8Stream {
 public:
  /// Adds a piece; appends to `out` all that is complete. Bytes that can become no character pass unchanged.
  void append(std::string_view piece, std::string& out) {
    held_.append(piece);
    const std::size_t ready = held_.size() - utf8_unfinished_bytes(held_);
    out.append(held_, 0, ready);
    held_.erase(0, ready);
  }

  /// Ends the text: bytes that were held back are appended unchanged.
  void finish(std::string& out) {
    out.append(held_);
    held_.clear();
  }

  [[nodiscard]] std::size_t held_bytes() const noexcept { return held_.size(); }  // 0 to 3

 private:
  std::string held_;
};

}  // namespace mica::text
