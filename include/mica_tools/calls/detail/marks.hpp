// SPDX-License-Identifier: Apache-2.0
//
// Comparing marks with text that may still be incomplete, and cutting text into marks.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace mica::calls::detail {

inline constexpr std::string_view space = " \t\r\n";

/// more: the text ends before this is known.
enum class Match : std::uint8_t { no, more, yes };

constexpr bool is_space(char c) noexcept { return space.find(c) != std::string_view::npos; }

/// The first position from `at` on that is no white space, at most the length of the text.
constexpr std::size_t skip_space(std::string_view text, std::size_t at) noexcept {
  while (at < text.size() && is_space(text[at])) ++at;
  return at;
}

constexpr std::string_view trimmed(std::string_view text) noexcept {
  text.remove_prefix(skip_space(text, 0));
  return text.substr(0, text.find_last_not_of(space) + 1);
}

/// Compares a mark with the text from `at` on; white space counts on neither side. If it is there, `at` is
/// behind it afterwards. An empty mark is everywhere.
constexpr Match match(std::string_view text, std::size_t& at, std::string_view mark) noexcept {
  std::size_t next = at;
  for (const char c : mark) {
    if (is_space(c)) continue;
    next = skip_space(text, next);
    if (next == text.size()) return Match::more;
    if (text[next++] != c) return Match::no;
  }
  at = next;
  return Match::yes;
}

/// Bytes at the end of the text that may begin the mark.
constexpr std::size_t beginning_of(std::string_view mark, std::string_view text) noexcept {
  for (std::size_t n = std::min(mark.size() - 1, text.size()); n > 0; --n) {
    if (mark.starts_with(text.substr(text.size() - n))) return n;
  }
  return 0;
}

/// Letters, digits and the other bytes that names and ids have.
constexpr bool is_name_byte(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
         c == '.' || c == '/' || static_cast<unsigned char>(c) >= 0x80;
}

constexpr std::size_t skip_name(std::string_view text, std::size_t at) noexcept {
  while (at < text.size() && is_name_byte(text[at])) ++at;
  return at;
}

/// Bytes of the mark that the text begins with: <tool_call>, [TOOL_CALLS]; 1 where it begins with none.
constexpr std::size_t unit_size(std::string_view text) noexcept {
  constexpr std::size_t longest = 64;
  const char close = text.front() == '<' ? '>' : ']';
  if (text.front() != '<' && text.front() != '[') return 1;
  for (std::size_t i = 1; i < std::min(longest, text.size()); ++i) {
    const char c = text[i];
    if (c == close) return i + 1;
    const bool is_inside =
        close == '>' ? !is_space(c) && c != '<' : (c >= 'A' && c <= 'Z') || c == '_' || c == '/';
    if (!is_inside) return 1;
  }
  return 1;
}

/// The text as marks and single bytes.
inline std::vector<std::string_view> units_of(std::string_view text) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    out.push_back(text.substr(0, unit_size(text)));
    text.remove_prefix(out.back().size());
  }
  return out;
}

/// The marks of a closing text, of which some may be missing: behind those that are there, in this order.
/// no: none is there.
inline Match match_some(std::string_view text, std::size_t& at, std::string_view marks) {
  Match out = Match::no;
  while (!(marks = trimmed(marks)).empty()) {
    const std::size_t size =
        unit_size(marks) > 1 ? unit_size(marks) : std::min(marks.find_first_of("<["), marks.size());
    const std::string_view mark = marks.substr(0, std::max<std::size_t>(size, 1));
    marks.remove_prefix(mark.size());
    const Match here = match(text, at, mark);
    if (here == Match::more) return Match::more;
    if (here == Match::yes) out = Match::yes;
  }
  return out;
}

}  // namespace mica::calls::detail
