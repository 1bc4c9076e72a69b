// SPDX-License-Identifier: Apache-2.0

#include "mica_tools/schema/decimal.hpp"

#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mica::test::decimal_test {

using namespace schema;

namespace {

Decimal decimal(std::string_view text) {
  const auto out = parse_decimal(text);
  REQUIRE(out.has_value());
  return *out;
}

}  // namespace

TEST_CASE("spellings of one number are one decimal") {
  const std::vector<std::vector<std::string_view>> groups = {{"-1.5", "-15e-1", "-0.15E+1", "-1.500"},
                                                             {"0", "-0", "0.0", "0e5", "-0.00e-3"},
                                                             {"120", "1.2e2", "12E1", "1200e-1"},
                                                             {"0.012", "12e-3", "1.2E-2", "120e-4"},
                                                             {"1e400", "10e399"},
                                                             {"1e-400", "0.1e-399"}};
  for (std::size_t i = 0; i < groups.size(); ++i) {
    for (const std::string_view a : groups[i]) {
      for (std::size_t k = 0; k < groups.size(); ++k) {
        for (const std::string_view b : groups[k]) CHECK((decimal(a) == decimal(b)) == (i == k));
      }
    }
  }
}

TEST_CASE("decimals have the order of the numbers") {
  constexpr std::string_view rising[] = {"-100", "-99.5", "-1.25", "-1.2", "-1",  "-0.5", "0",
                                         "0.05", "0.5",   "0.51",  "1",    "1.2", "9",    "10"};
  for (std::size_t i = 0; i < std::size(rising); ++i) {
    for (std::size_t k = 0; k < std::size(rising); ++k) {
      const int wanted = i < k ? -1 : i > k ? 1 : 0;
      CHECK(decimal(rising[i]).compare(decimal(rising[k])) == wanted);
      CHECK(decimal(rising[i]).negated().compare(decimal(rising[k]).negated()) == -wanted);
    }
  }
}

TEST_CASE("a number with an exponent beyond 400 has no decimal") {
  for (const std::string_view text : {"1e401", "1e-401", "1e99999999999", "1e-99999999999"})
    CHECK(parse_decimal(text) == std::nullopt);
}

TEST_CASE("the tighter bound counts, and of two equal ones the exclusive one") {
  NumberRange range;
  CHECK(range.is_everything());
  for (const auto& [bound, exclusive] :
       {std::pair{"1", false}, {"1", false}, {"1", true}, {"1", false}, {"0", true}})
    range.at_least(decimal(bound), exclusive);
  CHECK_FALSE(range.contains(decimal("1")));
  CHECK(range.contains(decimal("1.5")));
  range.at_least(decimal("2"), false);
  CHECK(range.contains(decimal("2")));
  for (const auto& [bound, exclusive] :
       {std::pair{"5", false}, {"5", false}, {"5", true}, {"5", false}, {"6", false}})
    range.at_most(decimal(bound), exclusive);
  CHECK_FALSE(range.contains(decimal("5")));
  CHECK(range.contains(decimal("4.9")));
  range.at_most(decimal("3"), false);
  CHECK(range.contains(decimal("3")));
  CHECK_FALSE(range.contains(decimal("1.9")));
  CHECK_FALSE(range.contains(decimal("3.1")));
  CHECK_FALSE(range.is_everything());
}

TEST_CASE("a number is a multiple if the quotient is an integer") {
  const auto is_multiple_of = [](std::string_view value, std::string_view of) {
    return is_multiple(decimal(value), multiple_of(decimal(of)).value());
  };
  CHECK(is_multiple_of("0", "7"));
  CHECK(is_multiple_of("-21", "7"));
  CHECK(is_multiple_of("1.75", "0.25"));
  CHECK(is_multiple_of("3", "0.5"));
  CHECK(is_multiple_of("2147483646", "2147483647") == false);
  CHECK(is_multiple_of("100000000000000000001", "3") == false);
  CHECK(is_multiple_of("100000000000000000002", "3"));
  CHECK_FALSE(is_multiple_of("1.755", "0.25"));
  CHECK_FALSE(is_multiple_of("1.7", "0.25"));
}

TEST_CASE("divisors are above zero and have few digits") {
  CHECK(multiple_of(decimal("0")) == std::nullopt);
  CHECK(multiple_of(decimal("2147483648")) == std::nullopt);
  CHECK(multiple_of(decimal("1234567890123")) == std::nullopt);
  CHECK(multiple_of(decimal("0.000000000001")).value().divisor == 1);
}

}  // namespace mica::test::decimal_test
