// SPDX-License-Identifier: Apache-2.0
//
// What of a model's text reaches a terminal: each text whole, a byte at a time, and cut at every place.

#include "../examples/run/terminal_filter.hpp"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <utility>

namespace mica::test::terminal_filter_test {
namespace {

std::string shown(std::initializer_list<std::string_view> pieces, bool colors = true) {
  program::TerminalFilter filter(colors);
  std::string out;
  for (const std::string_view piece : pieces) out += filter.filter(piece);
  return out + filter.finish();
}

struct Case {
  std::string text;
  std::string passes;
};

const Case cases[] = {
    {"plain text\n\twith a tab", "plain text\n\twith a tab"},
    {"na\xC3\xAFve \xE6\xBC\xA2 \xF0\x9F\x99\x82", "na\xC3\xAFve \xE6\xBC\xA2 \xF0\x9F\x99\x82"},
    // Colours pass, and end with the text.
    {"\x1b[31mred\x1b[0m", "\x1b[31mred\x1b[0m"},
    {"\x1b[38;2;1;2;3mred", "\x1b[38;2;1;2;3mred\x1b[0m"},
    {"\x1b[4:3mwave\x1b[m", "\x1b[4:3mwave\x1b[m"},
    {"\xC2\2331mbold", "\x1b[1mbold\x1b[0m"},
    // Other sequences do not, also those that end with m.
    {"a\x1b[2J\x1b[H\x1b[10Ab", "ab"},
    {"a\x1b[?25lb\x1b[>4;2mc\x1b[=1md\x1b[1 me", "abcde"},
    {"a\x1b[6nb\x1b[c\x1b[18td", "abd"},
    {"a\033cb\0337c\x1b(0d\x1b#8e", "abcde"},
    {"a\x1b[12\nb", "a\nb"},
    {"a\x1b[" + std::string(100, '1') + "m", "a" + std::string(35, '1') + "m"},
    // Strings are swallowed up to each of their ends.
    {"a\x1b]0;title\007b", "ab"},
    {"a\x1b]52;c;bWljYQ==\x1b\\b", "ab"},
    {"a\xC2\2350;title\xC2\234b", "ab"},
    {"a\x1bPq#0;2;0\x1b\\b\x1b_apc\x1b\\c\x1b^pm\x1b\\d\x1bXsos\x1b\\e", "abcde"},
    {"a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\b", "alinkb"},
    {"a\x1b]0;title\030b", "ab"},
    {"a\x1b]0;never ends", "a"},
    {"a\x1b]" + std::string(4096, 'x') + "b", "ab"},
    {"a\x1b]0;x\x1b[31mb", "a\x1b[31mb\x1b[0m"},
    // Characters that move the cursor or hide what stands there.
    {"a\rb\bc\007d\177e\v\f\016f\r\n", "abcdef\n"},
    {std::string("a\0b", 3), "ab"},
    {"\xE2\x80\256abc\xE2\x81\xA9", "abc"},
    {"\xC2\x85\xC2\x84", ""},
    // Bytes that are not UTF-8, and unfinished ends.
    {"a\377b\23331m", "a\xEF\xBF\275b\xEF\xBF\27531m"},
    {"a\xE6\xBC", "a\xEF\xBF\xBD\xEF\xBF\xBD"},
    {"a\x1b", "a"},
    {"a\x1b[3", "a"},
    {"a\x1b\x1b[31mb", "a\x1b[31mb\x1b[0m"},
    {"a\x1b[\xC3\xA9", "a\xC3\xA9"},
};

TEST_CASE("characters and colours pass, and nothing else that a terminal obeys, wherever the text is cut") {
  for (const auto& [text, passes] : cases) {
    const auto& the_text = text;
    CAPTURE(the_text);
    CHECK(shown({text}) == passes);
    for (std::size_t at = 0; at <= text.size(); ++at) {
      const std::string_view whole = text;
      CAPTURE(at);
      REQUIRE(shown({whole.substr(0, at), whole.substr(at)}) == passes);
    }
    program::TerminalFilter filter(true);
    std::string out;
    for (const char byte : text) out += filter.filter({&byte, 1});
    CHECK(out + filter.finish() == passes);
  }
}

TEST_CASE("without colours no sequence passes") {
  for (const auto& [text, passes] : cases) {
    const auto& the_text = text;
    CAPTURE(the_text);
    CHECK(shown({text}, false).find('\x1b') == std::string::npos);
  }
  CHECK(shown({"\x1b[31mred\x1b[0m"}, false) == "red");
}

TEST_CASE("text after a finish() begins anew") {
  program::TerminalFilter filter(true);
  CHECK(filter.filter("a\x1b]0;") + filter.finish() == "a");
  CHECK(filter.filter("b") + filter.finish() == "b");
}

}  // namespace
}  // namespace mica::test::terminal_filter_test
