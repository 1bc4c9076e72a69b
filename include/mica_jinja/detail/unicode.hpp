// SPDX-License-Identifier: Apache-2.0
//
// UTF-8 as Python's str sees it: lengths, indices and slices count code points. No locale and no tables;
// letter case is known for Latin, Greek and Cyrillic. A byte that belongs to no valid sequence counts as one
// code point. Limit: other alphabets keep their case, and letters whose case changes their length (as in "ß")
// keep it too.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

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
  const char32_t least = size == 2 ? 0x80 : size == 3 ? 0x800 : 0x10000;
  if (value < least || value > 0x10FFFF || (value >= 0xD800 && value < 0xE000)) return bad;
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

/// Alphabets whose capitals stand directly before their small letters: even, odd, even, odd ...
[[nodiscard]] inline bool in_pairs_from_even(char32_t c) {
  return (c >= 0x100 && c <= 0x12F) || (c >= 0x132 && c <= 0x137) || (c >= 0x14A && c <= 0x177) ||
         (c >= 0x460 && c <= 0x481) || (c >= 0x48A && c <= 0x4BF) || (c >= 0x4D0 && c <= 0x52F) ||
         (c >= 0x1E00 && c <= 0x1E95) || (c >= 0x1EA0 && c <= 0x1EFF);
}

/// ... or odd, even, odd, even.
[[nodiscard]] inline bool in_pairs_from_odd(char32_t c) {
  return (c >= 0x139 && c <= 0x148) || (c >= 0x179 && c <= 0x17E) || (c >= 0x4C1 && c <= 0x4CE);
}

[[nodiscard]] inline char32_t lower(char32_t c) {
  if (c < 0x80) return c >= 'A' && c <= 'Z' ? c + 32 : c;
  if (c >= 0xC0 && c <= 0xDE) return c == 0xD7 ? c : c + 32;
  if ((c >= 0x391 && c <= 0x3A9 && c != 0x3A2) || (c >= 0x410 && c <= 0x42F)) return c + 32;
  if (c >= 0x400 && c <= 0x40F) return c + 80;
  if (c == 0x178) return 0xFF;
  if (in_pairs_from_even(c)) return c | 1;
  if (in_pairs_from_odd(c)) return c + (c & 1);
  return c;
}

[[nodiscard]] inline char32_t upper(char32_t c) {
  if (c < 0x80) return c >= 'a' && c <= 'z' ? c - 32 : c;
  if (c == 0xB5) return 0x39C;
  if (c >= 0xE0 && c <= 0xFE) return c == 0xF7 ? c : c - 32;
  if (c == 0xFF) return 0x178;
  if (c == 0x131) return 'I';
  if (c == 0x3C2) return 0x3A3;
  if ((c >= 0x3B1 && c <= 0x3C9) || (c >= 0x430 && c <= 0x44F)) return c - 32;
  if (c >= 0x450 && c <= 0x45F) return c - 80;
  if (in_pairs_from_even(c)) return c & ~char32_t{1};
  if (in_pairs_from_odd(c)) return c - 1 + (c & 1);
  return c;
}

[[nodiscard]] inline bool is_cased(char32_t c) { return lower(c) != c || upper(c) != c; }

[[nodiscard]] inline bool is_digit(char32_t c) { return c >= '0' && c <= '9'; }

/// Letters of the alphabets above, and everything from U+0100 on that is no white space or punctuation block.
[[nodiscard]] inline bool is_letter(char32_t c) {
  if (c < 0x100) return is_cased(c) || c == 0xAA || c == 0xB5 || c == 0xBA || c == 0xDF;
  return !is_space(c) && !(c >= 0x2000 && c <= 0x2BFF) && !(c >= 0x3000 && c <= 0x3004) &&
         !(c >= 0x3008 && c <= 0x3030) && !(c >= 0xE000 && c <= 0xF8FF) && !(c >= 0xFE10 && c <= 0xFE6F) &&
         !(c >= 0xFF00 && c <= 0xFF20) && c < 0x1F000;
}

/// What repr() shows as an escape. Limit: code points that Unicode has not assigned are taken for printable.
[[nodiscard]] inline bool is_printable(char32_t c) {
  if (c == ' ') return true;
  return c > 0x1F && !(c >= 0x7F && c <= 0xA0) && c != 0xAD && !is_space(c) &&
         !(c >= 0x200B && c <= 0x200F) && !(c >= 0x202A && c <= 0x202E) && !(c >= 0x2060 && c <= 0x206F) &&
         !(c >= 0xE000 && c <= 0xF8FF) && c != 0xFEFF && !(c >= 0xFFF0 && c <= 0xFFFB);
}

/// Applies `change` to each code point; bytes that are not UTF-8 stay as they are.
template <class Change>
[[nodiscard]] std::string map_code_points(std::string_view text, Change change) {
  std::string out;
  out.reserve(text.size());
  each_code_point(text, [&](CodePoint point, std::string_view bytes) {
    if (point.valid) {
      append_code_point(out, change(point.value));
    } else {
      out.append(bytes);
    }
  });
  return out;
}

[[nodiscard]] inline std::string lower(std::string_view text) {
  return map_code_points(text, [](char32_t c) { return lower(c); });
}

[[nodiscard]] inline std::string upper(std::string_view text) {
  return map_code_points(text, [](char32_t c) { return upper(c); });
}

/// First letter upper, the others lower.
[[nodiscard]] inline std::string capitalized(std::string_view text) {
  bool first = true;
  return map_code_points(text, [&first](char32_t c) {
    const bool head = first;
    first = false;
    return head ? upper(c) : lower(c);
  });
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
    const std::size_t least = text.size() - std::min<std::size_t>(4, text.size());
    while (at > least && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
    const CodePoint point = decode(text, at);
    if (!point.valid || at + point.size != text.size() || !drop(point.value)) break;
    text.remove_suffix(point.size);
  }
  return text;
}

}  // namespace mica::jinja::detail
