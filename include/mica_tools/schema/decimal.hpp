// SPDX-License-Identifier: Apache-2.0
//
// Decimal numbers as digits, exactly: for ranges and multiples of numbers in JSON texts.
#pragma once

#include "mica/base/error.hpp"

#include <nlohmann/json.hpp>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mica::schema {

/// sign * digits . fraction, without zeros at either end; the digits of zero are none.
struct Decimal {
  bool negative = false;
  std::string digits;    // before the point
  std::string fraction;  // after it

  [[nodiscard]] bool is_zero() const noexcept { return digits.empty() && fraction.empty(); }
  [[nodiscard]] bool is_integer() const noexcept { return fraction.empty(); }
  [[nodiscard]] Decimal negated() const {
    Decimal out = *this;
    out.negative = !negative && !is_zero();
    return out;
  }
  friend bool operator==(const Decimal&, const Decimal&) = default;

  /// -1, 0, 1: this is less than, equal to, greater than the other one.
  [[nodiscard]] int compare(const Decimal& other) const noexcept {
    if (negative != other.negative) return negative ? -1 : 1;
    const int size = compare_sizes(other);
    return negative ? -size : size;
  }

 private:
  [[nodiscard]] int compare_sizes(const Decimal& other) const noexcept {
    if (digits.size() != other.digits.size()) return digits.size() < other.digits.size() ? -1 : 1;
    if (digits != other.digits) return digits < other.digits ? -1 : 1;
    if (fraction == other.fraction) return 0;
    return fraction < other.fraction ? -1 : 1;  // a shorter one is a beginning, and less
  }
};

/// The decimal of a text as JSON spells numbers. Nothing where the exponent is beyond 400.
[[nodiscard]] inline std::optional<Decimal> parse_decimal(std::string_view text) {
  Decimal out;
  if (text.starts_with('-')) {
    out.negative = true;
    text.remove_prefix(1);
  }
  int exponent = 0;
  const std::size_t e = text.find_first_of("eE");
  if (e != std::string_view::npos) {
    std::string_view power = text.substr(e + 1);
    if (power.starts_with('+')) power.remove_prefix(1);
    const auto [end, error] = std::from_chars(power.data(), power.data() + power.size(), exponent);
    if (error != std::errc() || exponent > 400 || exponent < -400) return std::nullopt;
    text = text.substr(0, e);
  }
  const std::size_t point = std::min(text.find('.'), text.size());
  out.digits = text.substr(0, point);
  out.fraction = point < text.size() ? text.substr(point + 1) : std::string_view();
  for (; exponent > 0; --exponent) {
    out.digits += out.fraction.empty() ? '0' : out.fraction[0];
    if (!out.fraction.empty()) out.fraction.erase(0, 1);
  }
  for (; exponent < 0; ++exponent) {
    out.fraction.insert(out.fraction.begin(), out.digits.empty() ? '0' : out.digits.back());
    if (!out.digits.empty()) out.digits.pop_back();
  }
  out.digits.erase(0, std::min(out.digits.find_first_not_of('0'), out.digits.size()));
  out.fraction.resize(out.fraction.find_last_not_of('0') + 1);
  if (out.is_zero()) out.negative = false;
  return out;
}

/// The decimal of a JSON number: its shortest text.
template <class Json>
[[nodiscard]] std::optional<Decimal> decimal_of(const Json& number) {
  return parse_decimal(number.dump());
}

/// Decimals between bounds, and what else a number must be.
struct NumberRange {
  std::optional<Decimal> min, max;
  bool above_min = false, below_max = false;  // the bound itself is out

  void at_least(const Decimal& bound, bool exclusive) {
    const int order = min ? bound.compare(*min) : 1;
    if (order > 0) above_min = exclusive;
    if (order == 0) above_min = above_min || exclusive;
    if (order > 0) min = bound;
  }
  void at_most(const Decimal& bound, bool exclusive) {
    const int order = max ? bound.compare(*max) : -1;
    if (order < 0) below_max = exclusive;
    if (order == 0) below_max = below_max || exclusive;
    if (order < 0) max = bound;
  }
  [[nodiscard]] bool contains(const Decimal& value) const noexcept {
    if (min && (value.compare(*min) < 0 || (above_min && value == *min))) return false;
    return !max || (value.compare(*max) <= 0 && !(below_max && value == *max));
  }
  [[nodiscard]] bool is_everything() const noexcept { return !min && !max; }
};

/// A divisor as divisor / 10^decimals.
struct Multiple {
  std::uint32_t divisor;
  std::uint32_t decimals;
};
/// Nothing where it has too many digits (2^31).
[[nodiscard]] inline std::optional<Multiple> multiple_of(const Decimal& value) {
  const std::string digits = value.digits + value.fraction;
  std::uint64_t divisor = 0;
  if (digits.size() > 12) return std::nullopt;
  for (const char digit : digits) divisor = divisor * 10 + static_cast<std::uint64_t>(digit - '0');
  if (divisor == 0 || divisor >= 1U << 31) return std::nullopt;
  return Multiple{static_cast<std::uint32_t>(divisor), static_cast<std::uint32_t>(value.fraction.size())};
}

/// Whether value / (divisor / 10^decimals) is an integer.
[[nodiscard]] inline bool is_multiple(const Decimal& value, const Multiple& of) noexcept {
  if (value.fraction.size() > of.decimals) return false;
  std::uint64_t rest = 0;
  const auto add = [&](char digit) {
    rest = (rest * 10 + static_cast<std::uint64_t>(digit - '0')) % of.divisor;
  };
  for (const char digit : value.digits) add(digit);
  for (const char digit : value.fraction) add(digit);
  for (std::size_t i = value.fraction.size(); i < of.decimals; ++i) add('0');
  return rest == 0;
}

}  // namespace mica::schema
