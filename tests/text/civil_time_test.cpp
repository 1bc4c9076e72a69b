// SPDX-License-Identifier: Apache-2.0
//
// Dates of the Gregorian calendar, and their texts as strftime writes them in the C locale.

#include "mica_jinja/civil_time.hpp"

#include <doctest/doctest.h>

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace mica::test::civil_time_test {

using jinja::CivilTime;
using Pairs = std::initializer_list<std::pair<std::string_view, std::string_view>>;

TEST_CASE("a date is read with its time of day or without it") {
  for (const auto& [text, shown] : Pairs{{"2024-02-29", "2024-02-29 00:00:00"},
                                         {"2000-02-29", "2000-02-29 00:00:00"},
                                         {"0001-01-01", "1-01-01 00:00:00"},
                                         {"2025-01-15T12:34", "2025-01-15 12:34:00"},
                                         {"2025-01-15T12:34:56", "2025-01-15 12:34:56"},
                                         {"2025-12-31 23:59:59", "2025-12-31 23:59:59"}}) {
    const std::string_view the_text = text;
    CAPTURE(the_text);
    const auto time = CivilTime::parse(text);
    REQUIRE(time);
    CHECK(time->format("%Y-%m-%d %H:%M:%S") == shown);
  }
}

TEST_CASE("what is no date of the calendar is refused") {
  for (const std::string_view text : {"",
                                      "2024",
                                      "2024-1-01",
                                      "2024-01-0a",
                                      "2024-01-0/",
                                      "2024/01/01",
                                      "2024-01-01T",
                                      "2024-01-01T12",
                                      "2024-01-01x12:34",
                                      "2024-01-01T12.34",
                                      "2024-01-01T12:34:5",
                                      "2024-01-01T12:34:56Z",
                                      "0000-01-01",
                                      "2024-00-01",
                                      "2024-13-01",
                                      "2024-01-00",
                                      "2024-01-32",
                                      "2024-04-31",
                                      "2023-02-29",
                                      "1900-02-29",
                                      "2100-02-29",
                                      "2024-01-01T24:00",
                                      "2024-01-01T23:60",
                                      "2024-01-01T23:59:60"}) {
    CAPTURE(text);
    CHECK_FALSE(CivilTime::parse(text));
  }
}

TEST_CASE("every date has its day of the week") {
  for (const auto& [date, day] : Pairs{{"0001-01-01", "Monday"},
                                       {"1900-02-28", "Wednesday"},
                                       {"1900-03-01", "Thursday"},
                                       {"1969-07-20", "Sunday"},
                                       {"2000-02-29", "Tuesday"},
                                       {"2024-03-01", "Friday"},
                                       {"2024-12-31", "Tuesday"},
                                       {"2025-11-29", "Saturday"}}) {
    const std::string_view the_date = date;
    CAPTURE(the_date);
    CHECK(CivilTime::parse(date)->format("%A") == day);
    CHECK(CivilTime::parse(date)->format("%a") == day.substr(0, 3));
  }
}

TEST_CASE("hours are counted to twelve and to twenty-four") {
  for (const auto& [hour, shown] : Pairs{{"00", "12 AM 12"},
                                         {"01", "01 AM 1"},
                                         {"11", "11 AM 11"},
                                         {"12", "12 PM 12"},
                                         {"13", "01 PM 1"},
                                         {"23", "11 PM 11"}}) {
    const std::string_view the_hour = hour;
    CAPTURE(the_hour);
    const auto time = CivilTime::parse("2005-06-07T" + std::string(hour) + ":08");
    REQUIRE(time);
    CHECK(time->format("%I %p %-I") == shown);
  }
}

TEST_CASE("numbers have two digits, or no zero before them with a dash; what has no meaning stays") {
  const CivilTime time{2005, 6, 7, 8, 9, 0};
  for (const auto& [pattern, shown] : Pairs{{"%d.%m.%y %H:%M:%S", "07.06.05 08:09:00"},
                                            {"%-d.%-m.%-y %-H:%-M:%-S", "7.6.5 8:9:0"},
                                            {"%B %b %Y", "June Jun 2005"},
                                            {"100%", "100%"},
                                            {"%", "%"},
                                            {"%-", "%-"},
                                            {"%%d", "%d"},
                                            {"%Q %-Q", "%Q %-Q"},
                                            {"", ""}}) {
    const std::string_view the_pattern = pattern;
    CAPTURE(the_pattern);
    CHECK(time.format(pattern) == shown);
  }
}

}  // namespace mica::test::civil_time_test
