// SPDX-License-Identifier: Apache-2.0
//
// Numbers to text and back as Python writes and reads them, without a locale.
#pragma once

#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace mica::jinja::detail {

/// |value|, which for the lowest integer is one more than the highest.
[[nodiscard]] constexpr std::uint64_t magnitude(std::int64_t value) noexcept {
  const auto bits = static_cast<std::uint64_t>(value);
  return value < 0 ? std::uint64_t{0} - bits : bits;
}

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

/// Digits with single underscores between them become digits alone; anything else is refused.
[[nodiscard]] inline std::optional<std::string> without_underscores(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      out.push_back(text[i]);
    } else if (i == 0 || i + 1 == text.size() || text[i - 1] == '_') {
      return std::nullopt;
    }
  }
  return out;
}

/// Reads an integer with sign, as int(text, base) does but for the white space; base 0 reads the prefix.
/// Empty when it is no integer or does not fit into 64 bits.
[[nodiscard]] inline std::optional<std::int64_t> parse_integer(std::string_view text, int base = 10) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  const auto prefixed = [&](char letter, int radix) {
    if ((base != 0 && base != radix) || text.size() < 3 || text[0] != '0' || (text[1] | 32) != letter)
      return false;
    text.remove_prefix(text[2] == '_' ? 3 : 2);
    base = radix;
    return true;
  };
  if (!prefixed('x', 16) && !prefixed('o', 8) && !prefixed('b', 2) && base == 0) {
    if (text.size() > 1 && text[0] == '0' && text.find_first_not_of("0_") != std::string_view::npos)
      return std::nullopt;
    base = 10;
  }
  const auto digits = without_underscores(text);
  if (!digits || digits->empty() || digits->front() == '-') return std::nullopt;
  std::int64_t value = 0;
  const std::string signed_digits = negative ? "-" + *digits : *digits;
  const char* last = signed_digits.data() + signed_digits.size();
  const auto [end, error] = std::from_chars(signed_digits.data(), last, value, base);
  if (error != std::errc{} || end != last) return std::nullopt;
  return value;
}

/// Reads a number as float(text) does but for the white space.
[[nodiscard]] inline std::optional<double> parse_real(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  const auto digits = without_underscores(text);
  if (!digits || digits->empty() || digits->front() == '-') return std::nullopt;
  double value = 0;
  const char* last = digits->data() + digits->size();
  const auto [end, error] = std::from_chars(digits->data(), last, value);
  if (end != last || error == std::errc::invalid_argument) return std::nullopt;
  // from_chars leaves the value alone when it is out of range: too small has a negative exponent, too large
  // has none.
  if (error == std::errc::result_out_of_range) {
    const std::size_t mark = digits->find_first_of("eE");
    const bool tiny =
        mark == std::string::npos ? digits->front() == '0' : digits->compare(mark + 1, 1, "-") == 0;
    value = tiny ? 0.0 : std::numeric_limits<double>::infinity();
  }
  return negative ? -value : value;
}

}  // namespace mica::jinja::detail
