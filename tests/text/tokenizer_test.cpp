// SPDX-License-Identifier: Apache-2.0

#include "mica/text/tokenizer.hpp"

#include "archetype/tokenizer.hpp"
#include "mica/base/rng.hpp"
#include "text/small_vocabulary.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tokenizer_test {

using namespace mica::text;
using mica::test::SmallVocabulary;

namespace {

SmallVocabulary spm() {
  SmallVocabulary small("llama");
  small.add("<unk>", TokenType::unknown);
  small.add("<s>", TokenType::control);
  small.add("</s>", TokenType::control);
  small.add_bytes();
  for (const char* text : {"\u2581", "a", "b", "\u2581a", "\u2581b"}) small.add(text);
  return small;
}

/// Up to forty characters of one to four bytes, spaces and pieces of special tokens among them.
std::string random_text(std::uint64_t seed) {
  constexpr std::array<std::string_view, 16> parts = {
      " ",      "a",      "b",      "\n",     "<",          "s>",     "<0x41>", "</s",
      "\u00FC", "\u0301", "\u6F22", "\uFFFD", "\U0001F600", "\u2028", "  ",     std::string_view("\0", 1)};
  mica::CounterRng rng(seed);
  std::string out;
  for (std::uint64_t n = rng.next() % 40; n > 0; --n) out += parts[rng.next() % parts.size()];
  return out;
}

}  // namespace

TEST_CASE("decoding takes back the space that encoding put before the first word") {
  const AnyTokenizer tokenizer = make_tokenizer(spm().build());
  for (const std::string text : {"a b", " a", "  a  b ", "", "\xC3\xBC", "b\n", "\xFFz"}) {
    CHECK(tokenizer.decode(tokenizer.encode(text)) == text);
  }
}

TEST_CASE("hidden special tokens do not keep the space, shown ones do") {
  const AnyTokenizer tokenizer = make_tokenizer(spm().build());
  const std::vector<TokenId> ids = tokenizer.encode("a");
  REQUIRE(ids.size() == 2);
  CHECK(tokenizer.decode(ids) == "a");
  CHECK(tokenizer.decode(ids, {.show_special = true}) == "<s> a");
}

TEST_CASE("a piece is the bytes of one token, half a character included") {
  const AnyTokenizer tokenizer = make_tokenizer(spm().build());
  CHECK(tokenizer.piece(3 + 0xC3) == "\xC3");
  CHECK(tokenizer.piece(1).empty());
  CHECK(tokenizer.piece(1, true) == "<s>");
  CHECK(tokenizer.vocabulary().size() == 264);
}

TEST_CASE("an id outside the vocabulary is refused with both numbers") {
  const AnyTokenizer tokenizer = make_tokenizer(spm().build());
  const std::vector<TokenId> ids = {264};
  CHECK_THROWS_WITH_AS(static_cast<void>(tokenizer.piece(264)),
                       "token 264 is outside the vocabulary of 264 tokens (0 to 263)", const mica::Error&);
  CHECK_THROWS_AS(static_cast<void>(tokenizer.decode(ids)), const mica::Error&);
}

TEST_CASE("any valid text comes back from a vocabulary with byte tokens") {
  const AnyTokenizer tokenizer = make_tokenizer(spm().build());
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const std::string text = random_text(seed);
    CHECK(tokenizer.decode(tokenizer.encode(text)) == text);
  }
}

TEST_CASE("the least tokenizer is one") {
  const mica::archetype::Tokenizer tokenizer;
  std::string out;
  for (const TokenId id : tokenizer.encode("a\xC3\xBC", {})) tokenizer.append_piece(id, false, out);
  CHECK(out == "a\xC3\xBC");
}

TEST_CASE("tidying drops the spaces that some decoders drop and no others") {
  using detail::with_tidy_spaces;
  CHECK(with_tidy_spaces("Hi , you . No ! What ?") == "Hi, you. No! What?");
  CHECK(with_tidy_spaces("it 's I 'm we 're they 've he 'd") == "it's I'm we're they've he 'd");
  CHECK(with_tidy_spaces("a ' b") == "a'b");
  CHECK(with_tidy_spaces(" .") == ".");
  CHECK(with_tidy_spaces("a  b : c\n.") == "a  b : c\n.");
  CHECK(with_tidy_spaces("").empty());
}

#if defined(MICA_HAS_TEXT)

TEST_CASE("the vocabulary decides which tokenizer it is") {
  SmallVocabulary small("gpt2");
  small.source().pre = "gpt-2";
  const TokenId a = small.add("a");
  const TokenId comma = small.add("\u0120,");
  const AnyTokenizer tokenizer = make_tokenizer(small.build());
  CHECK(tokenizer.vocabulary().kind() == TokenizerKind::bpe);
  CHECK(tokenizer.decode(std::vector{a, comma}) == "a ,");
  CHECK(tokenizer.decode(std::vector{a, comma}, {.tidy_spaces = true}) == "a,");
}

TEST_CASE("any valid text comes back from a vocabulary of bytes, whatever cuts it into words") {
  for (const PretokenizerRules& rules : all_pretokenizer_rules) {
    SmallVocabulary small("gpt2");
    const std::string pre(rules.names.substr(0, rules.names.find(' ')));
    small.source().pre = pre;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const char c = static_cast<char>(byte);
      std::string spelled;
      append_spelled({&c, 1}, spelled);
      small.add(spelled);
    }
    for (const char* pair : {"a b", "b a", "\u0120 a", "\u0120 \u0120", "\u00C3 \u00BC"}) small.merge(pair);
    for (const char* text : {"ab", "ba", "\u0120a", "\u0120\u0120", "\u00C3\u00BC"}) small.add(text);
    const AnyTokenizer tokenizer = make_tokenizer(small.build());
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
      const std::string text = random_text(seed);
      CHECK(tokenizer.decode(tokenizer.encode(text)) == text);
    }
  }
}

#endif

}  // namespace tokenizer_test
