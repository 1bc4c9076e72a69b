// SPDX-License-Identifier: Apache-2.0
//
// Stripping, splitting, replacing and formatting of text, shared by the methods of strings and by filters.
// Limit: formats know %s, %d, {}, {0} and {name}, without widths and decimals.
#pragma once

#include "mica_jinja/detail/callable.hpp"
#include "mica_jinja/detail/comparison.hpp"
#include "mica_jinja/detail/meter.hpp"
#include "mica_jinja/detail/printing.hpp"
#include "mica_jinja/detail/unicode.hpp"
#include "mica_jinja/value.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
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

/// What %d prints.
[[nodiscard]] inline std::int64_t integer_of(const Value& value) {
  if (is_whole(value)) return whole(value);
  const auto number = value.is(Kind::real) ? truncated(value.real()) : std::nullopt;
  if (!number) fail("'%d' wants a finite number, not '", type_name(value), "'");
  return *number;
}

/// %s, %d and %%, each with the value that is next.
[[nodiscard]] inline std::string percent_format(std::string_view text, const std::vector<Value>& values,
                                                Meter& meter) {
  std::string out;
  std::size_t used = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '%') {
      out.push_back(text[at]);
      continue;
    }
    const char type = ++at < text.size() ? text[at] : '\0';
    if (type != '%' && type != 's' && type != 'd')
      fail("'%", escaped(text.substr(at, 1)), "' is not supported; formats are %s, %d and %%");
    if (type != '%' && used == values.size()) fail("too few values for the format");
    out += type == '%'   ? "%"
           : type == 'd' ? std::to_string(integer_of(values[used]))
                         : text_of(values[used], meter);
    used += type == '%' ? 0 : 1;
    meter.check_length(out.size());
  }
  if (used != values.size()) fail("not all values were used by the format");
  meter.bytes(out.size());
  return out;
}

/// The value that "{0}", "{name}" or "{}" means; `next` counts the empty ones.
[[nodiscard]] inline const Value& chosen_field(std::string_view name, const Arguments& arguments,
                                               std::size_t& next) {
  const auto index = name.empty() ? std::optional(static_cast<std::int64_t>(next++)) : parse_integer(name);
  if (!index) {
    const Value* found = arguments.find(name);
    if (found == nullptr) fail("format() was not given '", escaped(name), "'");
    return *found;
  }
  if (*index < 0 || static_cast<std::size_t>(*index) >= arguments.positional.size())
    fail("format() was not given a value number ", *index);
  return arguments.positional[static_cast<std::size_t>(*index)];
}

/// text.format(...)
[[nodiscard]] inline std::string brace_format(std::string_view text, const Arguments& arguments,
                                              Meter& meter) {
  std::string out;
  std::size_t next = 0;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at++];
    const bool doubled = at < text.size() && text[at] == c;
    if (c != '{' && c != '}') {
      out.push_back(c);
    } else if (doubled) {
      out.push_back(c);
      ++at;
    } else {
      const std::size_t close = text.find('}', at);
      if (c == '}' || close == std::string_view::npos) fail("format() found a single '", c, "'");
      out += text_of(chosen_field(text.substr(at, close - at), arguments, next), meter);
      at = close + 1;
    }
    meter.check_length(out.size());
  }
  meter.bytes(out.size());
  return out;
}

}  // namespace mica::jinja::detail
