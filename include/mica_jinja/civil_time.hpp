// SPDX-License-Identifier: Apache-2.0
//
// A moment on the calendar, without time zone or locale, and its text in the notation of strftime.
#pragma once

#include <array>
#include <cstddef>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace mica::jinja {

namespace detail {

inline constexpr std::array<std::string_view, 12> month_names = {
    "January", "February", "March",     "April",   "May",      "June",
    "July",    "August",   "September", "October", "November", "December"};
inline constexpr std::array<std::string_view, 7> day_names = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                                              "Thursday", "Friday", "Saturday"};

[[nodiscard]] inline bool is_leap(int year) { return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0); }

[[nodiscard]] inline int days_in(int year, int month) {
  constexpr std::array<int, 12> days = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  return days[static_cast<std::size_t>(month - 1)] + (month == 2 && is_leap(year) ? 1 : 0);
}

}  // namespace detail

/// Date and time of day as a clock on the wall shows them.
struct CivilTime {
  int year = 1970;  ///< from 1 on
  int month = 1;    ///< 1..12
  int day = 1;      ///< 1..31
  int hour = 0;     ///< 0..23
  int minute = 0;   ///< 0..59
  int second = 0;   ///< 0..59; 60 in a leap second

  /// The local time now.
  static CivilTime now() {
    const std::time_t seconds = std::time(nullptr);
    std::tm local{};
#ifdef _WIN32
    localtime_s(&local, &seconds);
#else
    localtime_r(&seconds, &local);
#endif
    return {local.tm_year + 1900, local.tm_mon + 1, local.tm_mday, local.tm_hour, local.tm_min, local.tm_sec};
  }

  /// Reads "2025-01-15", "2025-01-15T12:34" or "2025-01-15T12:34:56"; empty when it is none of these.
  static std::optional<CivilTime> parse(std::string_view text) {
    constexpr std::string_view shape = "0000-00-00T00:00:00";
    if (text.size() != 10 && text.size() != 16 && text.size() != 19) return std::nullopt;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const bool digit = text[i] >= '0' && text[i] <= '9';
      if (shape[i] == '0' ? !digit : text[i] != shape[i] && !(i == 10 && text[i] == ' ')) return std::nullopt;
    }
    const auto number = [text](std::size_t at, std::size_t width) {
      int value = 0;
      for (std::size_t i = at; i < at + width && i < text.size(); ++i) value = value * 10 + (text[i] - '0');
      return value;
    };
    const CivilTime time{number(0, 4),  number(5, 2),  number(8, 2),
                         number(11, 2), number(14, 2), number(17, 2)};
    if (time.year < 1 || time.month < 1 || time.month > 12 || time.day < 1) return std::nullopt;
    if (time.day > detail::days_in(time.year, time.month)) return std::nullopt;
    if (time.hour > 23 || time.minute > 59 || time.second > 59) return std::nullopt;
    return time;
  }

  /// 0 is Sunday.
  [[nodiscard]] int weekday() const {
    const int before = year - 1;  // the first of January of the year 1 was a Monday
    int days = before * 365 + before / 4 - before / 100 + before / 400 + day;
    for (int m = 1; m < month; ++m) days += detail::days_in(year, m);
    return days % 7;
  }

  /// Follows strftime in the C locale for %A %a %B %b %d %H %I %M %m %p %S %Y %y %%, with "-" after the
  /// percent sign for no padding; anything else stays as it is written.
  [[nodiscard]] std::string format(std::string_view pattern) const {
    std::string out;
    for (std::size_t i = 0; i < pattern.size(); ++i) {
      std::size_t letter = i + 1;
      const bool bare = pattern[i] == '%' && letter < pattern.size() && pattern[letter] == '-';
      if (bare) ++letter;
      if (pattern[i] != '%' || letter >= pattern.size()) {
        out.push_back(pattern[i]);
      } else if (const auto text = conversion(pattern[letter], bare)) {
        out += *text;
        i = letter;
      } else {
        out.push_back('%');
      }
    }
    return out;
  }

 private:
  /// What stands for %letter; empty for a letter without a meaning.
  [[nodiscard]] std::optional<std::string> conversion(char letter, bool bare) const {
    const std::string_view day_name = detail::day_names[static_cast<std::size_t>(weekday())];
    const std::string_view month_name = detail::month_names[static_cast<std::size_t>(month - 1)];
    const std::pair<char, int> numbers[] = {{'y', year % 100}, {'m', month},  {'d', day},
                                            {'H', hour},       {'M', minute}, {'I', (hour + 11) % 12 + 1},
                                            {'S', second}};
    const std::pair<char, std::string_view> words[] = {{'p', hour < 12 ? "AM" : "PM"}, {'A', day_name},
                                                       {'a', day_name.substr(0, 3)},   {'B', month_name},
                                                       {'b', month_name.substr(0, 3)}, {'%', "%"}};
    for (const auto& [name, value] : numbers) {
      if (name == letter) return (bare || value > 9 ? "" : "0") + std::to_string(value);
    }
    for (const auto& [name, text] : words) {
      if (name == letter) return std::string(text);
    }
    return letter == 'Y' ? std::optional(std::to_string(year)) : std::nullopt;
  }
};

}  // namespace mica::jinja
