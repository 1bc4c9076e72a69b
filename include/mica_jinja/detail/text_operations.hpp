// SPDX-License-Identifier: Apache-2.0
//
// Splitting, replacing, stripping and aligning of text, shared by the methods of strings and by filters.
#pragma once

#include "mica_jinja/detail/meter.hpp"
#include "mica_jinja/detail/unicode.hpp"
#include "mica_jinja/template_error.hpp"
#include "mica_jinja/value.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mica::jinja::detail {

enum class Side : std::uint8_t { both, left, right };

[[nodiscard]] inline std::string_view stripped(std::string_view text, Side side) {
  if (side != Side::right) text = drop_front(text, [](char32_t c) { return is_space(c); });
  if (side != Side::left) text = drop_back(text, [](char32_t c) { return is_space(c); });
  return text;
}

/// Strips code points that occur in `set`; charges for looking through it.
[[nodiscard]] inline std::string_view stripped(std::string_view text, Side side, std::string_view set,
                                               Meter& meter) {
  const auto in_set = [&](char32_t c) {
    meter.characters(4 + set.size());
    std::string point;
    append_code_point(point, c);
    return set.find(point) != std::string_view::npos;
  };
  if (side != Side::right) text = drop_front(text, in_set);
  if (side != Side::left) text = drop_back(text, in_set);
  return text;
}

/// Parts become strings of their own, which cost far more than their bytes.
inline void add_part(std::vector<Value>& parts, std::string_view part, Meter& meter) {
  meter.items(4);
  meter.bytes(part.size());
  parts.emplace_back(part);
}

/// The max number of repetitions; a negative limit means no limit.
[[nodiscard]] constexpr std::uint64_t times(std::int64_t limit) noexcept {
  return limit < 0 ? ~std::uint64_t{0} : static_cast<std::uint64_t>(limit);
}

/// text.split(separator, limit); a negative limit means none.
[[nodiscard]] inline std::vector<Value> split(std::string_view text, std::string_view separator,
                                              std::int64_t limit, Meter& meter) {
  meter.search(text.size(), separator.size());
  std::vector<Value> parts;
  for (std::uint64_t left = times(limit); left != 0; --left) {
    const std::size_t at = text.find(separator);
    if (at == std::string_view::npos) break;
    add_part(parts, text.substr(0, at), meter);
    text.remove_prefix(at + separator.size());
  }
  add_part(parts, text, meter);
  return parts;
}

/// The same from the end.
[[nodiscard]] inline std::vector<Value> split_back(std::string_view text, std::string_view separator,
                                                   std::int64_t limit, Meter& meter) {
  meter.search(text.size(), separator.size());
  std::vector<Value> parts;
  for (std::uint64_t left = times(limit); left != 0; --left) {
    const std::size_t at = text.rfind(separator);
    if (at == std::string_view::npos) break;
    add_part(parts, text.substr(at + separator.size()), meter);
    text = text.substr(0, at);
  }
  add_part(parts, text, meter);
  return {parts.rbegin(), parts.rend()};
}

/// Bytes up to the first white space.
[[nodiscard]] inline std::size_t word_length(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const CodePoint point = decode(text, at);
    if (point.valid && is_space(point.value)) break;
    at += point.size;
  }
  return at;
}

/// text.split(): words between runs of white space.
[[nodiscard]] inline std::vector<Value> words(std::string_view text, std::int64_t limit, Meter& meter) {
  meter.characters(text.size());
  std::vector<Value> parts;
  std::uint64_t left = times(limit);
  for (text = stripped(text, Side::left); !text.empty(); text = stripped(text, Side::left)) {
    const std::size_t length = left == 0 ? text.size() : word_length(text);
    add_part(parts, text.substr(0, length), meter);
    text.remove_prefix(length);
    --left;
  }
  return parts;
}

/// text.rsplit() with a limit: words from the end, the rest in one piece at the front.
[[nodiscard]] inline std::vector<Value> words_back(std::string_view text, std::int64_t limit, Meter& meter) {
  meter.characters(text.size());
  std::vector<Value> parts;
  std::uint64_t left = times(limit);
  for (text = stripped(text, Side::right); !text.empty(); text = stripped(text, Side::right)) {
    const std::string_view rest =
        left == 0 ? std::string_view() : drop_back(text, [](char32_t c) { return !is_space(c); });
    add_part(parts, text.substr(rest.size()), meter);
    text = rest;
    --left;
  }
  return {parts.rbegin(), parts.rend()};
}

/// Length of the line break at `at`: that of str.splitlines(), 0 where there is none.
[[nodiscard]] inline std::size_t line_break(std::string_view text, std::size_t at) {
  const CodePoint point = decode(text, at);
  if (point.value == '\r') return text.substr(at).starts_with("\r\n") ? 2 : 1;
  const char32_t c = point.value;
  const bool breaks = point.valid && ((c >= 0x0A && c <= 0x0C) || (c >= 0x1C && c <= 0x1E) || c == 0x85 ||
                                      c == 0x2028 || c == 0x2029);
  return breaks ? point.size : 0;
}

[[nodiscard]] inline std::vector<Value> lines(std::string_view text, bool keep_ends, Meter& meter) {
  meter.characters(text.size());
  std::vector<Value> parts;
  std::size_t start = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t width = line_break(text, at);
    if (width == 0) {
      at += decode(text, at).size;
      continue;
    }
    add_part(parts, text.substr(start, at - start + (keep_ends ? width : 0)), meter);
    at += width;
    start = at;
  }
  if (start < text.size()) add_part(parts, text.substr(start), meter);
  return parts;
}

/// text.replace(from, to, limit); a negative limit means none.
[[nodiscard]] inline std::string replaced(std::string_view text, std::string_view from, std::string_view to,
                                          std::int64_t limit, Meter& meter) {
  meter.search(text.size(), from.size());
  std::string out;
  std::size_t at = 0;
  const auto keep_until = [&](std::size_t end) {
    meter.bytes(end - at + to.size());
    out.append(text.substr(at, end - at));
    at = end;
    meter.check_length(out.size() + to.size());
  };
  for (std::uint64_t left = times(limit); left != 0; --left) {
    const std::size_t found = from.empty() ? at : text.find(from, at);
    if (found == std::string_view::npos) break;
    meter.expression();
    keep_until(found);
    out.append(to);
    at += from.size();
    if (!from.empty()) continue;
    if (at == text.size()) return out;
    keep_until(at + decode(text, at).size);
  }
  keep_until(text.size());
  return out;
}

/// Index in code points, or -1.
[[nodiscard]] inline std::int64_t index_in(std::string_view text, std::size_t byte) {
  return byte == std::string_view::npos ? -1
                                        : static_cast<std::int64_t>(count_code_points(text.substr(0, byte)));
}

[[nodiscard]] inline std::int64_t count_in(std::string_view text, std::string_view part) {
  if (part.empty()) return static_cast<std::int64_t>(count_code_points(text)) + 1;
  std::int64_t count = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + part.size()))
    ++count;
  return count;
}

/// Fills up to `width` code points; what does not divide evenly goes where Python's str.center puts it.
[[nodiscard]] inline std::string padded_text(std::string_view text, std::int64_t width, std::string_view fill,
                                             Side text_side, Meter& meter) {
  meter.characters(text.size());
  const auto length = static_cast<std::int64_t>(count_code_points(text));
  if (width <= length) return std::string(text);
  const auto room = static_cast<std::uint64_t>(width - length);
  meter.repeated_bytes(fill.size(), room);
  const bool odd_left = (room & 1) != 0 && (width & 1) != 0;
  const std::uint64_t left = text_side == Side::left    ? 0
                             : text_side == Side::right ? room
                                                        : room / 2 + (odd_left ? 1 : 0);
  std::string out;
  for (std::uint64_t i = 0; i < left; ++i) out.append(fill);
  out.append(text);
  for (std::uint64_t i = left; i < room; ++i) out.append(fill);
  return out;
}

}  // namespace mica::jinja::detail
