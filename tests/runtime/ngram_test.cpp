// SPDX-License-Identifier: Apache-2.0

#include "mica/runtime/ngram.hpp"

#include "io/temporary_folder.hpp"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

namespace mica::test::ngram_test {
namespace {

/// Letters as ids: what follows `text`, as far as `drafts` letters.
std::string drafted(std::string_view text, std::size_t n, std::size_t drafts) {
  const std::vector<TokenId> ids(text.begin(), text.end());
  std::vector<TokenId> out(drafts);
  Ngram ngram({.n = n, .drafts = drafts});
  const std::size_t count = ngram.draft(std::span(ids).first(ids.size() - 1), ids.back(), out);
  return {out.begin(), out.begin() + static_cast<std::ptrdiff_t>(count)};
}

}  // namespace

TEST_CASE("what followed the last tokens is expected to follow them again") {
  CHECK(drafted("the cat sat. the c", 3, 4) == "at s");
  CHECK(drafted("abcdeabc", 3, 2) == "de");
}

TEST_CASE("the longest match counts, of several the latest") {
  CHECK(drafted("xabc1 abc2 bc3 abc", 4, 1) == "2");   // " abc" once, "abc" twice
  CHECK(drafted("xabc1 abc2 bc3 xabc", 4, 1) == "1");  // "xabc" wins though it is far
  CHECK(drafted("xabc1 abc2 bc3 xabc", 3, 1) == "2");
  CHECK(drafted("xabc1 abc2 bc3 xabc", 2, 1) == "3");
}

TEST_CASE("drafts go round where the match reaches the end of the text") {
  CHECK(drafted("abab", 3, 5) == "ababa");
  CHECK(drafted("xaaa", 3, 3) == "aaa");
}

TEST_CASE("one token is no match unless somebody asks for it") {
  CHECK(drafted("abca", 3, 3).empty());
  CHECK(drafted("abca", 1, 2) == "bc");
  CHECK(drafted("abc", 3, 3).empty());
  CHECK(drafted("a", 3, 3).empty());
  CHECK(drafted("aa", 3, 3).empty());
  CHECK(drafted("aa", 1, 3) == "aaa");
}

TEST_CASE("numbers out of range are refused, and no drafts are a number") {
  CHECK(refusal([] { Ngram({.n = 0, .drafts = 1}); }).code() == ErrorCode::usage);
  CHECK(mentions(refusal([] { Ngram({.n = 65, .drafts = 1}); }), "65", "64"));
  CHECK(mentions(refusal([] { Ngram({.n = 3, .drafts = 65}); }), "65", "64"));
  CHECK(drafted("abab", 3, 0).empty());
}

}  // namespace mica::test::ngram_test
