// SPDX-License-Identifier: Apache-2.0
//
// Base64 and rows of numbers as replies have them.

#include "mica_tools/json/row_text.hpp"

#include <doctest/doctest.h>

#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::test::base64_test {

TEST_CASE("bytes become Base64 and come back") {
  using Pairs = std::initializer_list<std::pair<std::string_view, std::string_view>>;
  for (const auto& [bytes, text] : Pairs{{"", ""},  // from RFC 4648
                                         {"f", "Zg=="},
                                         {"fo", "Zm8="},
                                         {"foo", "Zm9v"},
                                         {"foob", "Zm9vYg=="},
                                         {"fooba", "Zm9vYmE="},
                                         {"foobar", "Zm9vYmFy"},
                                         {std::string_view("\0\0\0", 3), "AAAA"},
                                         {"\xFB\xFF\xFE", "+//+"}}) {
    CHECK(base64_encoded(bytes) == text);
    CHECK(base64_decoded(text) == bytes);
  }
}

TEST_CASE("what is not Base64 is not decoded") {
  for (const std::string_view text :
       {"Z", "Zg", "Zg=", "Zm9vY", "Zg==Zg==", "Z===", "====", "Zm-_", "Zm 9", "Zm9\n"}) {
    CAPTURE(text);
    CHECK_FALSE(base64_decoded(text));
  }
}

TEST_CASE("a row is the shortest numbers that read back, or its floats in Base64") {
  const std::vector<float> row = {0.1F, -2.0F, 1e-10F, std::numeric_limits<float>::max()};
  std::string text;
  append_row(text, row);
  append_numbers(text, row, ' ');
  append_row(text, {});
  CHECK(text == "[0.1,-2,1e-10,3.4028235e+38]0.1 -2 1e-10 3.4028235e+38[]");
  std::string encoded;
  append_base64_row(encoded, std::vector<float>{1.0F, -2.0F});  // 00 00 80 3F 00 00 00 C0
  CHECK(encoded == "\"AACAPwAAAMA=\"");
}

}  // namespace mica::test::base64_test
