// SPDX-License-Identifier: Apache-2.0

#include "mica/text/utf8.hpp"

#include <doctest/doctest.h>

#include <string>
#include <string_view>

namespace utf8_test {

using namespace mica::text;

TEST_CASE("a well-formed sequence has the length its first byte says") {
  CHECK(utf8_sequence_bytes("a") == 1);
  CHECK(utf8_sequence_bytes(std::string_view("\0", 1)) == 1);
  CHECK(utf8_sequence_bytes("\xC3\xBC") == 2);
  CHECK(utf8_sequence_bytes("\xE2\x82\xAC.") == 3);
  CHECK(utf8_sequence_bytes("\xF0\x9F\x98\x80") == 4);
  CHECK(utf8_sequence_bytes("\xF4\x8F\xBF\xBF") == 4);  // U+10FFFF, the last one
  CHECK(utf8_sequence_bytes("\xED\xA0\x80") == 3);      // a surrogate has one spelling
}

TEST_CASE("overlong, cut, stray and too large sequences are malformed") {
  for (const std::string_view text :
       {"", "\x80", "\xC0\xAF", "\xC1\x81", "\xC3", "\xC3(", "\xE0\x9F\xBF", "\xE2\x82", "\xE2(\xA1",
        "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF"}) {
    CHECK(utf8_sequence_bytes(text) == 0);
  }
}

TEST_CASE("repair puts one U+FFFD for each byte that belongs nowhere") {
  const std::string r(replacement_character);
  CHECK(repaired_utf8("caf\xC3\xA9") == "caf\xC3\xA9");
  CHECK(repaired_utf8("a\x80z") == "a" + r + "z");
  CHECK(repaired_utf8("\xE2\x82") == r + r);
  CHECK(repaired_utf8("\xF8\x88\x80\x80\x80") == r + r + r + r + r);
  CHECK(is_utf8(repaired_utf8("\xFF\xFE\xE2(\xA1\xF0\x9F")));
  CHECK_FALSE(is_utf8("ok \xF0\x9F"));
  CHECK(is_utf8(""));
}

TEST_CASE("a stream passes whole characters however they are cut") {
  const std::string text = "a\xC3\xBC\xE2\x82\xAC\xF0\x9F\x98\x80z";
  for (std::size_t step = 1; step <= 5; ++step) {
    Utf8Stream stream;
    std::string out;
    for (std::size_t at = 0; at < text.size(); at += step) {
      stream.append(std::string_view(text).substr(at, step), out);
      CHECK(is_utf8(out));
    }
    CHECK(stream.held_bytes() == 0);
    CHECK(out == text);
  }
}

TEST_CASE("a stream does not wait for what can become no character") {
  Utf8Stream stream;
  std::string out;
  stream.append("\x80\xFF\xC0", out);  // no first byte of anything
  CHECK(out == "\x80\xFF\xC0");
  stream.append("\xF0\x9F\x98", out);
  CHECK(stream.held_bytes() == 3);
  stream.append("!", out);  // the fourth byte never came
  CHECK(out == "\x80\xFF\xC0\xF0\x9F\x98!");
  CHECK(stream.held_bytes() == 0);
  for (const std::string_view text :
       {"\xFF", "\xF5", "\xC1", "\x80", "\x80\x80", "a\x80", "\x80\x80\x80\x80"}) {
    CHECK(utf8_unfinished_bytes(text) == 0);
  }
}

TEST_CASE("the end of a stream releases what was held back") {
  Utf8Stream stream;
  std::string out;
  stream.append("x\xE2\x82", out);
  CHECK(out == "x");
  stream.finish(out);
  CHECK(out == "x\xE2\x82");
  CHECK(stream.held_bytes() == 0);
}

}  // namespace utf8_test
