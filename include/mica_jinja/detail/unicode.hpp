// SPDX-License-Identifier: Apache-2.0
//
// UTF-8 as Python's str sees it: lengths, indices and slices count code points, and so does a byte that
// belongs to no valid sequence. No locale and no tables. Limit: letters outside of ASCII keep their case.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace mica::jinja::detail {

struct CodePoint {
  char32_t value = 0;
  std::size_t size = 1;  ///< bytes
  bool valid = true;
};

/// Decodes the code point at `at`, which must lie inside the text.
[[nodiscard]] inline CodePoint decode(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(at);
  if (lead < 0x80) return {lead, 1, true};
  const CodePoint bad{lead, 1, false};
  const std::size_t size = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || size > text.size() - at) return bad;
  char32_t value = lead & (0x7Fu >> size);
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(at + i) & 0xC0) != 0x80) return bad;
    value = value << 6 | (byte(at + i) & 0x3Fu);
  }
  const char32_t min = size == 2 ? 0x80 : size == 3 ? 0x800 : 0x10000;
  if (value < min || value > 0x10FFFF || (value >= 0xD800 && value < 0xE000)) return bad;
  return {value, size, true};
}

inline void append_code_point(std::string& out, char32_t value) {
  const auto put = [&out](char32_t byte) {
    out.push_back(static_cast<char>(static_cast<unsigned char>(byte)));
  };
  if (value < 0x80) return put(value);
  if (value < 0x800) {
    put(0xC0 | value >> 6);
  } else if (value < 0x10000) {
    put(0xE0 | value >> 12);
    put(0x80 | (value >> 6 & 0x3F));
  } else {
    put(0xF0 | value >> 18);
    put(0x80 | (value >> 12 & 0x3F));
    put(0x80 | (value >> 6 & 0x3F));
  }
  put(0x80 | (value & 0x3F));
}

/// Calls `visit(CodePoint, std::string_view bytes)` for each code point.
template <class Visit>
void each_code_point(std::string_view text, Visit visit) {
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = decode(text, at);
    visit(point, text.substr(at, point.size));
    at += point.size;
  }
}

[[nodiscard]] inline std::size_t count_code_points(std::string_view text) {
  std::size_t count = 0;
  for (std::size_t at = 0; at < text.size(); ++count) at += decode(text, at).size;
  return count;
}

/// Bytes taken by the first `count` code points, or by all when there are fewer.
[[nodiscard]] inline std::size_t offset_of(std::string_view text, std::size_t count) {
  std::size_t at = 0;
  for (; count > 0 && at < text.size(); --count) at += decode(text, at).size;
  return at;
}

/// Offset of the first byte that is not UTF-8.
[[nodiscard]] inline std::optional<std::size_t> find_invalid(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = decode(text, at);
    if (!point.valid) return at;
    at += point.size;
  }
  return std::nullopt;
}

/// What str.strip() and str.split() take for white space.
[[nodiscard]] inline bool is_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x1F);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

[[nodiscard]] inline char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }
[[nodiscard]] inline char upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; }

/// What repr() shows as an escape: controls, formats, separators and private characters (Unicode 15). Limit: code
/// points that Unicode has not assigned are taken for printable below U+E0000.
[[nodiscard]] inline bool is_printable(char32_t c) {
  static constexpr struct {
    char32_t first, last;
  } hidden[] = {{0x00, 0x1F},       {0x7F, 0xA0},       {0xAD, 0xAD},       {0x600, 0x605},
                {0x61C, 0x61C},     {0x6DD, 0x6DD},     {0x70F, 0x70F},     {0x890, 0x891},
                {0x8E2, 0x8E2},     {0x180E, 0x180E},   {0x200B, 0x200F},   {0x202A, 0x202E},
                {0x2060, 0x206F},   {0xE000, 0xF8FF},   {0xFEFF, 0xFEFF},   {0xFFF0, 0xFFFB},
                {0x110BD, 0x110BD}, {0x110CD, 0x110CD}, {0x13430, 0x1343F}, {0x1BCA0, 0x1BCA3},
                {0x1D173, 0x1D17A}, {0xE0000, 0xE00FF}, {0xE01F0, 0x10FFFF}};
  const auto hides = [&](const auto& range) { return c >= range.first && c <= range.last; };
  return c == ' ' || (!is_space(c) && std::none_of(std::begin(hidden), std::end(hidden), hides));
}

[[nodiscard]] inline std::string lower(std::string text) {
  for (char& c : text) c = lower(c);
  return text;
}

[[nodiscard]] inline std::string upper(std::string text) {
  for (char& c : text) c = upper(c);
  return text;
}

/// First letter upper, the others lower.
[[nodiscard]] inline std::string capitalized(std::string text) {
  text = lower(std::move(text));
  if (!text.empty()) text[0] = upper(text[0]);
  return text;
}

/// A capital after each character that ends a word, and at the front.
template <bool (*ends_word)(char)>
[[nodiscard]] std::string titled(std::string text) {
  bool inside = false;
  for (char& c : text) {
    const bool ends = ends_word(c);
    c = inside ? lower(c) : upper(c);
    inside = !ends;
  }
  return text;
}

/// For str.title(): everything but letters, for which all bytes above ASCII are taken.
[[nodiscard]] inline bool is_no_letter(char c) {
  return static_cast<unsigned char>(c) < 0x80 && lower(c) == upper(c);
}

/// For the filter `title`: white space, dashes and open brackets.
[[nodiscard]] inline bool is_gap(char c) {
  return c == ' ' || (c >= 0x09 && c <= 0x0D) || std::string_view("-({[<").find(c) != std::string_view::npos;
}

/// The text without the code points at its front for which `drop` holds.
template <class Drop>
[[nodiscard]] std::string_view drop_front(std::string_view text, Drop drop) {
  while (!text.empty()) {
    const CodePoint point = decode(text, 0);
    if (!point.valid || !drop(point.value)) break;
    text.remove_prefix(point.size);
  }
  return text;
}

/// The text without the code points at its back for which `drop` holds.
template <class Drop>
[[nodiscard]] std::string_view drop_back(std::string_view text, Drop drop) {
  while (!text.empty()) {
    std::size_t at = text.size() - 1;
    const std::size_t min = text.size() - std::min<std::size_t>(4, text.size());
    while (at > min && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
    const CodePoint point = decode(text, at);
    if (!point.valid || at + point.size != text.size() || !drop(point.value)) break;
    text.remove_suffix(point.size);
  }
  return text;
}

}  // namespace mica::jinja::detail
