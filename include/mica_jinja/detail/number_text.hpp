// SPDX-License-Identifier: Apache-2.0
//
// Numbers to text and back as Python writes and reads them, without a locale.
#pragma once

#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace mica::jinja::detail {

/// Shortest digits that read back as the same number, laid out as Python's repr(float) does.
[[nodiscard]] inline std::string real_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::array<char, 64> buffer;
  const auto end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::scientific).ptr;
  const std::string_view scientific(buffer.data(), static_cast<std::size_t>(end - buffer.data()));
  const std::size_t mark = scientific.find('e');
  int exponent = 0;
  const char* digits = scientific.data() + mark + (scientific[mark + 1] == '+' ? 2 : 1);
  std::from_chars(digits, end, exponent);
  if (exponent < -4 || exponent >= 16) return std::string(scientific);

  const auto fixed =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed).ptr;
  std::string out(buffer.data(), fixed);
  if (out.find('.') == std::string::npos) out += ".0";
  return out;
}

/// The number with `digits` decimals, as "%.<digits>f" writes it.
[[nodiscard]] inline std::string fixed_text(double value, int digits) {
  if (!std::isfinite(value)) return real_text(value);
  std::string out(std::size_t{320} + static_cast<std::size_t>(digits), '\0');
  const auto end =
      std::to_chars(out.data(), out.data() + out.size(), value, std::chars_format::fixed, digits).ptr;
  out.resize(static_cast<std::size_t>(end - out.data()));
  return out;
}

/// Reads decimal digits with a sign; empty when that is no integer or does not fit into 64 bits.
[[nodiscard]] inline std::optional<std::int64_t> parse_integer(std::string_view text) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  std::int64_t value = 0;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (error != std::errc{} || end != last) return std::nullopt;
  return value;
}

/// Reads a number as float(text) does, but for white space, underscores and what is out of range.
[[nodiscard]] inline std::optional<double> parse_real(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (text.starts_with('-')) return std::nullopt;
  double value = 0;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (end != last || error != std::errc{}) return std::nullopt;
  return negative ? -value : value;
}

}  // namespace mica::jinja::detail
