// SPDX-License-Identifier: Apache-2.0
//
// Characters as Python's str knows them: white space, line breaks, what repr() escapes, where words begin,
// and bytes that are no UTF-8.

#include "mica_jinja/template.hpp"

#include <doctest/doctest.h>

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace mica::test::jinja_characters_test {
namespace {

using jinja::Template;
using jinja::Value;

/// What a template prints that sees the text as v.
std::string render(const char* source, std::string_view v) {
  return Template::parse(source).render(Value::mapping({{"v", v}}));
}

/// repr() of the text.
std::string repr(std::string_view text) { return render("{{ [v] }}", text); }

std::string words_of(std::string_view text) { return render("{{ v.split()|join('|') }}", text); }

// Control characters below U+00A0 stand as bytes.
constexpr std::string_view spaces[] = {
    "\t",       "\n",     "\x0B",   "\x0C",   "\r",     "\x1C",   "\x1D",   "\x1E",   "\x1F",   " ",
    "\xC2\x85", "\u00A0", "\u1680", "\u2000", "\u2001", "\u2002", "\u2003", "\u2004", "\u2005", "\u2006",
    "\u2007",   "\u2008", "\u2009", "\u200A", "\u2028", "\u2029", "\u202F", "\u205F", "\u3000"};

constexpr std::string_view no_spaces[] = {"\x01",     "\x08",     "\x0E",   "\x1B",   "!",      "\x7F",
                                          "\xC2\x84", "\xC2\x86", "\u00A1", "\u167F", "\u1681", "\u1FFF",
                                          "\u200B",   "\u2027",   "\u202A", "\u202E", "\u2030", "\u205E",
                                          "\u2060",   "\u2FFF",   "\u3001", "\uFEFF"};

}  // namespace

TEST_CASE("white space is that of Unicode and four separators of ASCII") {
  for (const std::string_view space : spaces) {
    CAPTURE(repr(space));
    const std::string c(space);
    CHECK(words_of("a" + c + c + "b") == "a|b");
    CHECK(render("{{ v.strip() }}", c + "a" + c + "b" + c) == "a" + c + "b");
    CHECK(render("{{ v.lstrip() }}", c + "a" + c) == "a" + c);
    CHECK(render("{{ v|trim }}", c).empty());
  }
  for (const std::string_view other : no_spaces) {
    CAPTURE(repr(other));
    const std::string c(other);
    CHECK(words_of("a" + c + "b") == "a" + c + "b");
    CHECK(render("{{ v.strip() }}", c + "a" + c) == c + "a" + c);
  }
}

TEST_CASE("lines end where str.splitlines ends them") {
  const auto lines = [](std::string_view text) { return render("{{ v.splitlines() }}", text); };
  for (const std::string_view end :
       {"\n", "\r", "\r\n", "\x0B", "\x0C", "\x1C", "\x1D", "\x1E", "\xC2\x85", "\u2028", "\u2029"}) {
    CAPTURE(repr(end));
    const std::string e(end);
    CHECK(lines("a" + e + "b" + e) == "['a', 'b']");
    CHECK(lines(e + e) == "['', '']");
    CHECK(render("{{ v.splitlines(true)|join('|') }}", "a" + e + "b") == "a" + e + "|b");
  }
  for (const std::string_view other :
       {"\t", "\x0E", "\x1B", "\x1F", "\xC2\x84", "\xC2\x86", "\u00A0", "\u2027", "\u202A", "\u3000"}) {
    const std::string whole = "a" + std::string(other) + "b";
    CHECK(lines(whole) == repr(whole));
  }
}

TEST_CASE("repr escapes what cannot be seen and shows the rest") {
  using Pairs = std::initializer_list<std::pair<std::string_view, std::string_view>>;
  for (const auto& [text, shown] :
       Pairs{{std::string_view("\0\x1F ~\x7F", 5), "\\x00\\x1f ~\\x7f"},
             {"\xC2\x80\xC2\x9F\u00A0\u00A1\u00AC\u00AD\u00AE", "\\x80\\x9f\\xa0\u00A1\u00AC\\xad\u00AE"},
             {"\u1680\u2000\u200A\u2010", "\\u1680\\u2000\\u200a\u2010"},
             {"\u200B\u200F\u2027\u2028\u2029", "\\u200b\\u200f\u2027\\u2028\\u2029"},
             {"\u202A\u202E\u202F\u2030", "\\u202a\\u202e\\u202f\u2030"},
             {"\u205E\u205F\u2060\u206F\u2070", "\u205E\\u205f\\u2060\\u206f\u2070"},
             {"\u3000\u3001", "\\u3000\u3001"},
             {"\uD7FB\uE000\uF8FF\uF900", "\uD7FB\\ue000\\uf8ff\uF900"},
             {"\uFEFF\uFFF0\uFFF9\uFFFB\uFFFC\uFFFD", "\\ufeff\\ufff0\\ufff9\\ufffb\uFFFC\uFFFD"},
             {"\u061C\u180E\u0600\u0606", "\\u061c\\u180e\\u0600\u0606"},
             {"\U0001F600\U000E0100", "\U0001F600\U000E0100"},
             {"\U000E0001\U000F0000\U0010FFFD", "\\U000e0001\\U000f0000\\U0010fffd"}}) {
    CHECK(repr(text) == "['" + std::string(shown) + "']");
  }
}

TEST_CASE("title begins a word behind all that is no letter, the filter title behind spaces and brackets") {
  CHECK(render("{{ v.title() }}", "a\u00E9b \u00E9a 1a'b-c") == "A\u00E9b \u00E9a 1A'B-C");
  CHECK(render("{{ v|title }}", "a\tb\nc d-e(f{g[h<i'j.k") == "A\tB\nC D-E(F{G[H<I'j.k");
}

TEST_CASE("each byte that is no UTF-8 is a character of its own") {
  for (const std::string_view bad :
       {"\x80", "\xC1\x81", "\xF5\x80\x80\x80", "\xFF", "\xC3", "\xE4\xBD", "\xF0\x9F\x98", "\xE0\x9F\xBF",
        "\xED\xA0\x80", "\xED\xBF\xBF", "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xE4(("}) {
    const std::string text(bad);
    CAPTURE(repr(bad));
    CHECK(render("{{ v|length }}", bad) == std::to_string(bad.size()));
    CHECK(render("{{ v[0] }}", bad) == text.substr(0, 1));
    CHECK(render("{{ v.strip() }}", " " + text + " ") == text);
    CHECK(words_of(text + " " + text) == text + "|" + text);
    CHECK(render("{{ v.splitlines()|length }}", text + "\n" + text) == "2");
  }
  CHECK(repr("a\x80z\xC3(") == "['a\\x80z\\xc3(']");
  CHECK(render("{{ v.strip() }}", "\xFF a\x80 ") == "\xFF a\x80");
}

}  // namespace mica::test::jinja_characters_test
