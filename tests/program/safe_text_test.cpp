// SPDX-License-Identifier: Apache-2.0
//
// What the program does to text of files before a terminal sees it, apart from the program.

#include "../examples/run/safe_text.hpp"

#include "../examples/run/json_text.hpp"

#include <doctest/doctest.h>

#include <string>

namespace mica::test::safe_text_test {
namespace {

using program::cell_text, program::json_string, program::message_text, program::printable;

TEST_CASE("control bytes, C1, controls of text direction and bytes that are not UTF-8 appear as numbers") {
  CHECK(printable("\x1b[2J\x07\r\x7F") == "\\x1b[2J\\x07\\x0d\\x7f");
  CHECK(printable(std::string_view("a\0b", 3)) == "a\\x00b");
  CHECK(printable("\xC2\23331m") == "\\xc2\\x9b31m");  // U+009B, which is ESC [
  CHECK(printable("a\xE2\x80\256b\xE2\x81\xA6") == "a\\xe2\\x80\\xaeb\\xe2\\x81\\xa6");
  CHECK(printable("\xFF\xC3\xED\xA0\x80") == "\\xff\\xc3\\xed\\xa0\\x80");  // a surrogate is no UTF-8
  CHECK(printable("na\xC3\xAFve \xF0\x9F\x99\x82 \xC2\xA0 \xE2\x80\xA8") ==
        "na\xC3\xAFve \xF0\x9F\x99\x82 \xC2\xA0 \xE2\x80\xA8");
  CHECK(printable("one\n\ttwo") == "one\n\ttwo");
  CHECK(cell_text("one\n\ttwo") == "one\\x0a\\x09two");
}

TEST_CASE("every byte below 0x20 but line breaks and tabs, and every character of C1, is escaped") {
  for (int code = 0; code < 0xA0; ++code) {
    const std::string text =
        code < 0x80 ? std::string(1, static_cast<char>(code)) : std::string{'\xC2', static_cast<char>(code)};
    CAPTURE(code);
    const bool passes = (code >= 0x20 && code < 0x7F) || code == '\n' || code == '\t';
    CHECK((printable(text) == text) == passes);
  }
}

TEST_CASE("a name of any length leaves the sentence around it to be read, and no character is cut in two") {
  for (const std::string piece : {"x", "\xE6\xBC\xA2", "\x01"}) {
    std::string name;
    while (name.size() < 5000) name += piece;
    const std::string text = message_text("cannot open " + name + ": no such file");
    CHECK(text.size() < 600);
    CHECK(text.starts_with("cannot open "));
    CHECK(text.ends_with(": no such file"));
    CHECK(printable(text) == text);
    CHECK(text.find("...") != std::string::npos);
  }
  std::string words;
  while (words.size() < 100'000) words += "word ";
  CHECK(message_text(words).size() <= program::max_line_bytes + 3);
  const std::string two = message_text(words + "\n" + words);
  CHECK(two.size() > program::max_line_bytes);
  CHECK(two.size() <= 2 * program::max_line_bytes + 7);
  CHECK(message_text("short  words\n stay\t") == "short  words\n stay\t");
}

TEST_CASE("a string in JSON has control characters and controls of text direction as \\u") {
  CHECK(json_string("a\"\\\n\t\x1b\x7F") == "\"a\\\"\\\\\\n\\u0009\\u001b\\u007f\"");
  CHECK(json_string("\xC2\x9B \xE2\x80\xAE \xE2\x81\xA9") == "\"\\u009b \\u202e \\u2069\"");
  CHECK(json_string("\xFF \xED\xA0\x80 \xED\xA0") ==
        "\"\xEF\xBF\xBD \xEF\xBF\xBD \xEF\xBF\xBD\xEF\xBF\xBD\"");
  CHECK(json_string("\xE6\xBC\xA2 \xF0\x9F\x99\x82") == "\"\xE6\xBC\xA2 \xF0\x9F\x99\x82\"");
}

}  // namespace
}  // namespace mica::test::safe_text_test
