// SPDX-License-Identifier: Apache-2.0
//
// Ollama's keep_alive: how long a model stays in memory after an answer. Seconds as a number, or a text as Go
// writes times (time.ParseDuration): "5m", "1h30m", "1.5h", "-1".
#pragma once

#include "mica_tools/http/fields.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace mica::serve {

/// How long a model stays loaded after its last answer.
struct KeepAlive {
  std::optional<std::chrono::seconds> time;  // empty: until memory is needed

  /// It is to be unloaded when its answers have ended.
  [[nodiscard]] bool ends_now() const noexcept { return time == std::chrono::seconds(0); }
};

namespace detail {

/// The seconds of a unit of Go; a missing unit is a second. Empty: there is no such unit.
[[nodiscard]] inline std::optional<double> unit_seconds(std::string_view unit) noexcept {
  if (unit.empty() || unit == "s") return 1;
  if (unit == "h") return 3600;
  if (unit == "m") return 60;
  if (unit == "ms") return 1e-3;
  if (unit == "us") return 1e-6;
  if (unit == "ns") return 1e-9;
  return std::nullopt;
}

/// A text as seconds; empty: it is no time.
[[nodiscard]] inline std::optional<double> duration_seconds(std::string_view text) noexcept {
  constexpr std::string_view digits = "0123456789.";
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  double seconds = 0;
  do {
    const std::string_view number = text.substr(0, text.find_first_not_of(digits));
    text.remove_prefix(number.size());
    const std::string_view unit = text.substr(0, text.find_first_of(digits));
    text.remove_prefix(unit.size());
    double value = 0;
    const auto read = std::from_chars(number.data(), number.data() + number.size(), value);
    const auto factor = unit_seconds(unit);
    if (read.ec != std::errc() || read.ptr != number.data() + number.size() || !factor) return std::nullopt;
    seconds += value * *factor;
  } while (!text.empty());
  return negative ? -seconds : seconds;
}

}  // namespace detail

/// Below zero: until memory is needed; 0: until the answers have ended. Fractions of a second are rounded up.
/// Raises Refusal (invalid) for other values.
[[nodiscard]] inline KeepAlive read_keep_alive(const Json& value) {
  std::optional<double> seconds;
  if (value.is_number()) seconds = value.get<double>();
  if (value.is_string()) seconds = detail::duration_seconds(value.get<std::string>());
  if (!seconds)
    refuse_field("keep_alive",
                 join("found ", escaped(dump(value), 40),
                      ", allowed: seconds, or a text such as \"5m\", \"1h30m\", \"0\" or \"-1\""));
  constexpr double for_ever = 1e9;  // 31 years
  if (*seconds < 0 || *seconds > for_ever) return {};
  return {std::chrono::seconds(static_cast<std::int64_t>(std::ceil(*seconds)))};
}

}  // namespace mica::serve
