// SPDX-License-Identifier: Apache-2.0

#include "mica/constraint/regex.hpp"

#include "errors.hpp"
#include "mica/constraint/behind.hpp"
#include "mica/constraint/recognizer.hpp"
#include "reference.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace mica::test::regex_test {

using namespace constraint;

namespace {

bool finds(std::string_view pattern, std::string_view text, bool whole = false) {
  Expressions x;
  return x.accepts(parse_regex(pattern, x, {.whole = whole}), text);
}
bool matches(std::string_view pattern, std::string_view text) { return finds(pattern, text, true); }

/// The error of a pattern, as code and message.
std::string refusal(std::string_view pattern, const RegexOptions& options = {}) {
  Expressions x;
  return refusal_of([&] { static_cast<void>(parse_regex(pattern, x, options)); });
}
bool refuses(std::string_view pattern, std::string_view code, std::string_view words) {
  const std::string message = refusal(pattern);
  INFO(message);
  const bool right = message.starts_with(code) && message.find(words) != std::string::npos;
  CHECK(right);
  return right;
}

}  // namespace

TEST_CASE("a language behind a mark begins where the mark is first") {
  Language language = regex_language("[0-9]+");
  put_behind(language, "</think>", "\xFF\x31;");
  Recognizer recognizer(language);
  const auto has = [&](std::string_view text) {
    StateId state = recognizer.start();
    for (const char c : text) state = recognizer.step(state, static_cast<std::uint8_t>(c));
    return recognizer.accepts(state);
  };
  CHECK(has("Hm 7 </think>12"));
  CHECK(has("</think>\n\n12"));
  CHECK(has("two\xFF\x31; 3"));
  CHECK_FALSE(has("12"));
  CHECK_FALSE(has("a</think>b</think>12"));
  CHECK_FALSE(has("\x80</think>12"));
  Language other = regex_language("[0-9]+");
  put_behind(other, "</think>");
  Recognizer of_text(other);
  CHECK(accepts(of_text, "Hm </think> 12"));
  CHECK_FALSE(accepts(of_text, "two\xFF\x31; 3"));
}

TEST_CASE("a random pattern matches the texts that a slow matcher finds") {
  CounterRng rng(1);
  const auto texts = texts_of("abc", 4);
  for (int round = 0; round < 250; ++round) {
    const Tree tree = random_tree(rng, 1 + draw(rng, 3), Extra::none);
    const std::string pattern = tree.pattern();
    CAPTURE(pattern);
    Expressions x;
    const ExprId whole = parse_regex(pattern, x), found = parse_regex(pattern, x, {.whole = false});
    for (const std::string& text : texts) {
      CAPTURE(text);
      REQUIRE(x.accepts(whole, text) == tree.matches(text));
      REQUIRE(x.accepts(found, text) == tree.is_in(text));
    }
  }
}

TEST_CASE("anchors and lookaheads anywhere mean what a slow matcher finds, or are refused") {
  CounterRng rng(2);
  const auto texts = texts_of("abc", 4);
  std::size_t refused = 0;
  for (int round = 0; round < 300; ++round) {
    const Tree tree = random_tree(rng, 1 + draw(rng, 3), Extra::assertions);
    const std::string pattern = tree.pattern();
    CAPTURE(pattern);
    Expressions x;
    try {
      const ExprId whole = parse_regex(pattern, x), found = parse_regex(pattern, x, {.whole = false});
      for (const std::string& text : texts) {
        CAPTURE(text);
        REQUIRE(x.accepts(whole, text) == tree.matches(text));
        REQUIRE(x.accepts(found, text) == tree.is_in(text));
      }
    } catch (const Error& error) {
      REQUIRE(std::string(error.what()).find("lookahead in the repetition at byte") != std::string::npos);
      ++refused;
    }
  }
  CHECK(refused < 60);
}

TEST_CASE("literals, the point and escapes are ECMA's") {
  CHECK(matches("a.c", "abc"));
  CHECK(matches("a.c", "a\u00E9c"));
  CHECK_FALSE(matches("a.c", "a\nc"));
  CHECK_FALSE(matches("a.c", "a\u2028c"));
  CHECK(matches("\\t\\n\\v\\f\\r\\0", std::string_view("\t\n\v\f\r\0", 6)));
  CHECK(matches("\\cA\\cz\\x41\\u00e9\\u{1F600}\\uD83D\\uDE00",
                "\x01\x1A"
                "A\u00E9\U0001F600\U0001F600"));
  CHECK(matches("\\.\\*\\/\\-\\_\\@\\\\\\^", "./-_@\\^") == false);
  CHECK(matches("\\.\\*\\/\\-\\_\\@\\\\\\^", ".*/-_@\\^"));
  CHECK(matches("a{}b{c}]{,2}}{x", "a{}b{c}]{,2}}{x"));
  CHECK(matches("", ""));
  CHECK_FALSE(matches("", "a"));
  CHECK(finds("", "anything"));
  for (const std::string_view half : {"\\uD800", "\\uD83D\\u0041", "\\uD83D\\uFFFF", "\\uD83Dx"})
    for (const std::string_view text : {"\xED\xA0\x80", "A", "\uFFFD", "x", "\uFFFF"})
      CHECK_FALSE(finds(half, text));  // no text has half of a pair
  CHECK(matches("\\\u00E9\\\U0001F600", "\u00E9\U0001F600"));
  CHECK(matches("a{2,x}b{,3}c{1", "a{2,x}b{,3}c{1"));
  CHECK(matches("\u65E5\u672C", "\u65E5\u672C"));
}

TEST_CASE("classes have ranges, escapes and their complements") {
  CHECK(matches("[a-cx]+", "abcx"));
  CHECK_FALSE(matches("[^a-c]", "b"));
  CHECK(matches("[^a-c]", "\U0001F600"));
  CHECK(matches("[^a-c]", "\n"));
  CHECK(matches("[]a]", "]") == false);
  CHECK(finds("[]", "a") == false);
  CHECK(matches("[^]", "\n"));
  CHECK(matches("[\\]\\-\\\\^]+", "]-\\^"));
  CHECK(matches("[-a]+[a-]+[\\w-x]+", "-aa-_-x"));
  CHECK(matches("[\\b]", "\b"));
  CHECK(matches("[\\d\\s]+", "1 \u00A0\u3000\uFEFF2"));
  CHECK_FALSE(matches("\\s", "\u180E"));
  CHECK(matches("\\D\\W\\S", "a-b"));
  CHECK_FALSE(matches("\\w", "\u00E9"));
  CHECK(matches("[\\uD83D\\uDE00-\\uD83D\\uDE4F]", "\U0001F610"));
  CHECK(matches("[\\u{1F600}-\\u{1F64F}]", "\U0001F610"));
  CHECK(matches("[\\u0000-\\uD7FF\\uE000-\\uFFFD]+", "a\u20AC"));
  CHECK(matches("\\p{ASCII}\\P{ASCII}\\p{Any}\\p{ASCII_Hex_Digit}", "a\u00E9\nF"));
}

TEST_CASE("quantifiers count, and a lazy one accepts the same texts") {
  CHECK(matches("a{2}b{2,}c{0,1}", "aabbb"));
  CHECK_FALSE(matches("a{2}b{2,}c{0,1}", "aab"));
  CHECK(matches("(?:ab){2,3}?c*?d+?e??", "ababdd"));
  CHECK(matches("a{100000}", std::string(100'000, 'a')));
  CHECK_FALSE(matches("a{0}", "a"));
  CHECK(matches("(?<year>\\d{4})-(?<month>\\d\\d)", "2024-12"));
}

TEST_CASE("a search finds a match anywhere, and anchors bind it") {
  CHECK(finds("b+", "abc"));
  CHECK_FALSE(finds("^b+", "abc"));
  CHECK_FALSE(finds("b+$", "abc"));
  CHECK(finds("^abc$", "abc"));
  CHECK(finds("^a|c$", "xxc"));
  CHECK_FALSE(finds("^a|c$", "xcx"));
  for (const std::string_view text : {"a", "a,b", "b,a", "b,a,b"}) CHECK(finds("(^|,)a(,|$)", text));
  for (const std::string_view text : {"", "b", "ab", "b,ab", "ba,b"}) CHECK_FALSE(finds("(^|,)a(,|$)", text));
  CHECK(finds("^(\\d+(,|$))+$", "1,22,3"));
  CHECK(finds("^((^|, )(foo|bar))+$", "foo, bar, foo"));
  CHECK_FALSE(finds("^((^|, )(foo|bar))+$", "foobar"));
  CHECK_FALSE(finds("a^", "a"));  // nothing is before the beginning
  CHECK_FALSE(finds("$a", "a"));
  CHECK(finds("x*^a", "a"));
  CHECK(finds("^^a$$", "a"));
  const auto only = [](std::string_view pattern, const std::vector<std::string_view>& good,
                       const std::vector<std::string_view>& bad) {
    CAPTURE(pattern);
    for (const std::string_view text : good) {
      CAPTURE(text);
      CHECK(finds(pattern, text));
    }
    for (const std::string_view text : bad) {
      CAPTURE(text);
      CHECK_FALSE(finds(pattern, text));
    }
  };
  only("^x(^a|b)?c$", {"xc", "xbc"}, {"xac", "c", "ac"});
  only("^(^a|b){2,3}c$", {"abc", "abbc", "bbc", "bbbc"}, {"ac", "bc", "aac", "babc", "bbbbc"});
  only("^a(b$|c){2}", {"acb", "acc", "accx"}, {"ab", "abb", "acbx", "abc"});
  only("^((^a|b){2,3})*c$", {"c", "abc", "bbc", "abbbbc", "bbbbc"}, {"ac", "bc", "aac", "bbac"});
  only("^((^|b){2,3})*c$", {"c", "bc", "bbc", "bbbbc"}, {"ac", "b", "bca"});
  only("^((^a|b){0,3}d)*c$", {"c", "dc", "adc", "abdbdc"}, {"dadc", "ac", "abbbdc"});
}

TEST_CASE("lookaheads restrict what follows them") {
  const std::string_view password = "^(?=.*[A-Z])(?=.*\\d)(?!.*foo)\\S{8,}$";
  CHECK(finds(password, "abcdeF12"));
  CHECK_FALSE(finds(password, "abcdef12"));
  CHECK_FALSE(finds(password, "Abcfoo12"));
  CHECK_FALSE(finds(password, "aF1"));
  CHECK(finds("^(?!(a|b)$)[a-z]+$", "ab"));
  CHECK_FALSE(finds("^(?!(a|b)$)[a-z]+$", "a"));
  CHECK(finds("(?!foo)bar|^(?=x)\\w+$", "xyz"));
  CHECK(finds("foo(?=bar)", "foobar"));
  CHECK_FALSE(finds("foo(?!bar)", "foobar"));
  CHECK(finds("^((?!-)[a-z-]{1,63}\\.)+[a-z]+$", "ab-c.de.com"));  // it sees characters of its repetition
  CHECK_FALSE(finds("^((?!-)[a-z-]{1,63}\\.)+[a-z]+$", "ab.-d.com"));
  CHECK(finds("^(?:(?!--).)*$", "a-b-c"));
  CHECK_FALSE(finds("^(?:(?!--).)*$", "a-b--c"));
  for (const std::string_view text : {"", "b", "ab", "bab", "abb"}) CHECK(finds("^(?:(?=ab|b).)*$", text));
  for (const std::string_view text : {"a", "aab", "ba", "abc"}) CHECK_FALSE(finds("^(?:(?=ab|b).)*$", text));
  CHECK(finds("(?:(?!--).)*", "--"));  // no characters match
}

TEST_CASE("a search within another encoding stays within it") {
  Expressions x;
  const auto doubled = [](Expressions& e, const CodePoints& set) {
    const ExprId once = encode_utf8(e, set);
    return e.cat(e.literal("."), once);
  };
  const ExprId found = parse_regex("b+", x, {.encode = doubled, .whole = false});
  CHECK(x.accepts(found, ".a.b.c"));
  CHECK_FALSE(x.accepts(found, ".ab.c"));
  CHECK_FALSE(x.accepts(found, ".a.c"));
  const ExprId not_found = x.both(x.repeat(doubled(x, CodePoints::all()), 0), x.complement(found));
  CHECK(x.accepts(not_found, ".a.c"));
  CHECK_FALSE(x.accepts(not_found, ".a.b"));
}

TEST_CASE("after a match the state is one, whatever follows") {
  auto expressions = std::make_unique<Expressions>();
  const ExprId start = parse_regex("ab|ba", *expressions, {.whole = false});
  Language language = regular(std::move(expressions), start);
  Recognizer recognizer(language);
  CHECK(after(recognizer, "xab") == after(recognizer, "baaaab"));
  CHECK(after(recognizer, "\xE2\x82") != StateId::dead);
  CHECK(after(recognizer, "ab\xE2\x28") == StateId::dead);  // not UTF-8
}

TEST_CASE("patterns that make other matchers slow are read and used at once") {
  const std::string many_a(2000, 'a');
  CHECK(matches("(a*)*b", many_a + "b"));
  CHECK(matches("(a|a)*", many_a));
  CHECK(matches("(a|aa)+", many_a));
  CHECK(matches("((a{1,100}){1,100}){1,100}", many_a));
  CHECK(matches("(a?){500}a{500}", std::string(500, 'a')));
  CHECK_FALSE(matches("(x+x+)+y", std::string(2000, 'x')));
  CHECK(matches("(.*a){20}", many_a));
  CHECK(finds("a.{40}b", many_a + "b"));
  CHECK(finds("^(?=(a|b)*a(a|b){15}$)(?=.*b.{7}$).*$", "abbabababbababab"));
  std::string words = "w0";
  for (int i = 1; i < 2000; ++i) words += "|w" + std::to_string(i);
  CHECK(matches(words, "w1711"));
  CHECK(finds("^(" + words + ")$", "w1711"));
}

TEST_CASE("a pattern with too many readings of a text ends with a sentence") {
  Expressions x;
  std::string pattern, why;
  for (int i = 0; i < 20'100; ++i) pattern += "a?";
  const ExprId e = parse_regex(pattern, x);
  try {
    static_cast<void>(x.accepts(e, "aa"));
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::limit);
    why = error.what();
  }
  CHECK(why.find("readings of a text") != std::string::npos);
}

TEST_CASE("what is not supported is refused by name, with its place and a remedy") {
  refuses("a(b)\\1", "unsupported", "'a(b)\\1' has a back reference at byte 4: write the alternatives out");
  refuses("(?<n>a)\\k<n>", "unsupported", "a back reference at byte 7");
  refuses("(?<=a)b", "unsupported", "a lookbehind at byte 0");
  refuses("a(?<!a)b", "unsupported", "a lookbehind at byte 1");
  refuses("\\bfoo", "unsupported", "\\b, a boundary of words at byte 0");
  refuses("a\\B", "unsupported", "\\B");
  refuses("\\p{Letter}", "unsupported", "the property '{Letter}' at byte 0");
  refuses("[a\\P{Script=Greek}]", "unsupported", "the property '{Script=Greek}' at byte 2");
  refuses("(?i)a", "unsupported", "the group '(?i' at byte 0");
  refuses("(?P<n>a)", "unsupported", "known are (?:");
  refuses("\\012", "unsupported", "an octal escape at byte 0: write \\xHH");
  refuses("\\p", "unsupported", "the property ''");
  refuses("\\p{Any", "unsupported", "the property '{Any'");
  refuses("\\pAny", "unsupported", "the property");
  for (const std::string_view pattern :
       {"x(?:a(?!b))*c", "^(?:(?!abc)..)*$", "^(?:(?!abc)a{1,2})*$", "^(?:(?!ab)^.)*$", "(?:(?!ab).)*^"})
    refuses(pattern, "unsupported", "a lookahead in the repetition at byte");
}

TEST_CASE("what is no pattern is refused with its place and a remedy") {
  for (const std::string_view pattern :
       {"*a", "a**", "a{1}{2}", "^*", "a|+", "(?=a)*", "(?:?)", "{2}", "a$+", "(?!a)?"})
    refuses(pattern, "usage", "a quantifier");
  refuses("(a", "usage", "a ( without ) at byte 0");
  refuses("a)b", "usage", "a ) without ( at byte 1");
  for (const std::string_view pattern : {"[a", "[", "[^", "[a-", "[a-z"})
    refuses(pattern, "usage", "a [ without ] at byte 0");
  refuses("[z-a]", "usage", "a range whose end is before its beginning at byte 1");
  refuses("a{3,2}", "usage", "m < n");
  refuses("\\", "usage", "a backslash at its end");
  refuses("\\xZ1", "usage", "write \\xHH");
  for (const std::string_view pattern :
       {"\\u12", "\\u{110000}", "\\u{1100000}", "\\u{}", "\\u{41", "\\u{4g}", "\\uD83D\\uZZZZ"})
    refuses(pattern, "usage", "\\u without a code point");
  refuses("\\A", "usage", "the unknown escape \\A at byte 0");
  for (const std::string_view pattern : {"\\c1", "\\c_", "\\c-", "\\c"})
    refuses(pattern, "usage", "\\c without a letter");
  for (const std::string_view pattern : {"(?<n", "(?<>a)"}) refuses(pattern, "usage", "write (?<name>...)");
  refuses("a\xFF", "usage", "bytes that are not UTF-8 at byte 1");
  refuses("[\xC3]", "usage", "bytes that are not UTF-8 at byte 1");
}

TEST_CASE("limits of a pattern are named") {
  refuses("a{100001}", "limit", "allowed are numbers up to 100000");
  refuses("a{99999999999999999999,}", "limit", "a quantifier with a large number");
  refuses(std::string(70'000, 'a'), "limit", "a regular expression has 70000 bytes, allowed are 65536");
  const auto nested = [](std::size_t n) { return std::string(n, '(') + "a" + std::string(n, ')'); };
  CHECK(matches(nested(128), "a"));
  refuses(nested(129), "limit", "129 nested groups");
  refuses(std::string(20'000, '('), "limit", "nested groups");
  CHECK(refusal("((a))", {.max_nesting = 1}).starts_with("limit"));
  std::string anchored = "(a|^)";
  for (int i = 0; i < 60; ++i) anchored = "(" + anchored + "|$)*";
  refuses(anchored, "limit", "too many anchors in nested repetitions");
}

}  // namespace mica::test::regex_test
