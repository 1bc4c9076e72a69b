// SPDX-License-Identifier: Apache-2.0

#include "mica_tools/search/cut_text.hpp"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

namespace mica::test::cut_text_test {
namespace {

using search::Passage;

/// Words count, each with its blanks.
std::size_t count_words(std::string_view text) {
  std::size_t n = 0;
  for (std::size_t i = 0; i < text.size(); ++i)
    n += !search::detail::is_blank(text[i]) && (i == 0 || search::detail::is_blank(text[i - 1])) ? 1 : 0;
  return n;
}

std::vector<Passage> cut(std::string_view text, std::size_t max, bool markdown = false) {
  return search::cut_text(text, {.max_tokens = max, .markdown = markdown}, count_words);
}

std::vector<std::string> texts(std::string_view text, std::size_t max, bool markdown = false) {
  std::vector<std::string> out;
  for (const Passage& p : cut(text, max, markdown)) out.emplace_back(text.substr(p.offset, p.bytes));
  return out;
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("a short text is one passage, with its lines and without white space at its ends") {
  CHECK(cut("\n\n  one two\nthree\n\n", 10) == std::vector<Passage>{{4, 13, 3, 4}});
  CHECK(cut("", 10).empty());
  CHECK(cut(" \n\t\n", 10).empty());
  CHECK(cut("---\n\n* * *\n", 10).empty());
}

TEST_CASE("paragraphs share a passage while they fit, and none is divided if it fits alone") {
  const std::string text = "a b c\n\nd e\n \nf g h i\nj\n";
  CHECK(texts(text, 5) == Texts{"a b c\n\nd e", "f g h i\nj"});
  CHECK(texts(text, 10) == Texts{"a b c\n\nd e\n \nf g h i\nj"});
  CHECK(texts(text, 6) == Texts{"a b c\n\nd e", "f g h i\nj"});
  const auto passages = cut(text, 5);
  CHECK(passages[1].first_line == 5);
  CHECK(passages[1].last_line == 6);
}

TEST_CASE("a long paragraph is cut between sentences, lines, words and characters, the first that fits") {
  CHECK(texts("One two. Three 3.5 four! (Five \"six.\") Seven", 3) ==
        Texts{"One two.", "Three 3.5 four!", "(Five \"six.\") Seven"});
  CHECK(texts("a b c\nd e f\ng h", 4) == Texts{"a b c", "d e f", "g h"});
  CHECK(texts("a b c\nd e f\ng h", 2) == Texts{"a b", "c", "d e", "f", "g h"});
  CHECK(texts("\xE4\xB8\x80\xE3\x80\x82 \xE4\xBA\x8C \xE4\xB8\x89\xE3\x80\x82", 2) ==
        Texts{"\xE4\xB8\x80\xE3\x80\x82", "\xE4\xBA\x8C \xE4\xB8\x89\xE3\x80\x82"});
  const auto letters = [](std::string_view text) { return text.size(); };
  const auto passages = search::cut_text("abcdefg\xC3\xA4", {.max_tokens = 4}, letters);
  CHECK(passages == std::vector<Passage>{{0, 4, 1, 1}, {4, 3, 1, 1}, {7, 2, 1, 1}});
  CHECK(search::cut_text("\xC3\xA4", {.max_tokens = 1}, letters).size() == 1);  // one character, two letters
}

TEST_CASE("a heading of Markdown begins a passage, together with those directly below it, and not in code") {
  const std::string text =
      "intro\n# A\n\n## B\ntext\n```\n# no heading\n```\n####### none\n#none\n### C\nmore\n";
  CHECK(texts(text, 100, true) ==
        Texts{"intro", "# A\n\n## B\ntext\n```\n# no heading\n```\n####### none\n#none", "### C\nmore"});
  CHECK(texts(text, 100).size() == 1);
}

TEST_CASE("a heading is no passage by itself if a text follows") {
  CHECK(texts("# A\n\na b c. d e f g.\n", 5, true) == Texts{"# A\n\na b c.", "d e f g."});
  CHECK(texts("# A\n\na b c. d e f g.\n", 5) == Texts{"# A", "a b c.", "d e f g."});
  CHECK(texts("text\n# A\n## B\n", 5, true) == Texts{"text", "# A\n## B"});
  CHECK(texts("# a b c d\ne\n", 3, true) == Texts{"# a b", "c d\ne"});
}

TEST_CASE("every passage of random text fits, in order and without gaps but for white space") {
  std::string text;
  std::uint32_t state = 1;
  const auto next = [&](std::uint32_t n) { return (state = state * 1664525 + 1013904223) / 65536 % n; };
  for (int i = 0; i < 3000; ++i)
    text += std::vector<std::string>{"word", " ", "\n", "\n\n", ". ", "# ", "\xE4\xB8\x80", "x"}[next(8)];
  for (const std::size_t max : {1u, 2u, 7u, 100u, 100000u}) {
    std::size_t at = 0;
    std::uint64_t line = 1;
    for (const Passage& p : cut(text, max, true)) {
      const std::string_view gap = std::string_view(text).substr(at, p.offset - at);
      CHECK(std::none_of(gap.begin(), gap.end(), search::detail::is_of_word));
      CHECK(count_words(std::string_view(text).substr(p.offset, p.bytes)) <= max);
      CHECK(p.bytes <= max * search::bytes_of_token);
      const auto before = text.begin() + static_cast<std::ptrdiff_t>(p.offset);
      CHECK(p.first_line == 1 + static_cast<std::uint64_t>(std::count(text.begin(), before, '\n')));
      CHECK(p.first_line >= line);
      CHECK(p.last_line >= p.first_line);
      line = p.last_line;
      at = p.offset + p.bytes;
    }
    const std::string_view rest = std::string_view(text).substr(at);
    CHECK(std::none_of(rest.begin(), rest.end(), search::detail::is_of_word));
  }
}

TEST_CASE("a text without a place to cut costs counts in proportion to its length") {
  std::size_t counted = 0;
  const std::string text(1 << 20, 'x');
  const auto one = [&](std::string_view part) { return counted += part.size(), part.size() / 4 + 1; };
  const auto passages = search::cut_text(text, {.max_tokens = 256}, one);
  CHECK(passages.size() > 1000);
  CHECK(counted < 40 * text.size());
}

}  // namespace mica::test::cut_text_test
