// SPDX-License-Identifier: Apache-2.0

#include "mica/text/spm.hpp"

#include "text/small_vocabulary.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spm_test {

using namespace mica::text;
using mica::test::SmallVocabulary;

namespace {

using Ids = std::vector<TokenId>;

constexpr EncodeOptions plain = {.add_special = false, .parse_special = false};
constexpr EncodeOptions parsed = {.add_special = false, .parse_special = true};

/// <unk> <s> </s>, 256 bytes from 3, then pieces that "hello" and "a b" are made of.
struct Toy {
  SmallVocabulary small{"llama"};
  TokenId byte0, space, h, e, l, o, a, b, he, ll, hell, hello, space_hello, space_a;

  Toy() {
    small.add("<unk>", TokenType::unknown);
    small.add("<s>", TokenType::control);
    small.add("</s>", TokenType::control);
    byte0 = small.add_bytes();
    space = small.add("\u2581", TokenType::normal, -50);
    h = small.add("h", TokenType::normal, -51);
    e = small.add("e", TokenType::normal, -52);
    l = small.add("l", TokenType::normal, -53);
    o = small.add("o", TokenType::normal, -54);
    a = small.add("a", TokenType::normal, -55);
    b = small.add("b", TokenType::normal, -56);
    he = small.add("he", TokenType::normal, -2);
    ll = small.add("ll", TokenType::normal, -1);
    hell = small.add("hell", TokenType::normal, -3);
    hello = small.add("hello", TokenType::normal, -4);
    space_hello = small.add("\u2581hello", TokenType::normal, -5);
    space_a = small.add("\u2581a", TokenType::normal, -6);
  }

  Spm build() { return Spm(small.build()); }
};

std::string text_of(const Spm& spm, const Ids& ids, bool show_special = true) {
  std::string out;
  for (const TokenId id : ids) spm.append_piece(id, show_special, out);
  return out;
}

}  // namespace

TEST_CASE("a vocabulary of another kind is refused") {
  SmallVocabulary other{"bert"};
  other.add("[CLS]", TokenType::control);
  CHECK_THROWS_AS(static_cast<void>(Spm(other.build())), mica::Error);
}

TEST_CASE("the first word gets a space and neighbours join by score") {
  Toy toy;
  const Spm spm = toy.build();
  CHECK(spm.encode("hello", plain) == Ids{toy.space_hello});
  CHECK(spm.encode("hell", plain) == Ids{toy.space, toy.hell});
  CHECK(spm.encode("a hello", plain) == Ids{toy.space_a, toy.space_hello});
  CHECK(spm.encode("", plain).empty());
  CHECK(spm.encode("lll", plain) == Ids{toy.space, toy.ll, toy.l});  // of equal pairs the left one
}

TEST_CASE("a vocabulary without space prefix takes the text as it is") {
  Toy toy;
  toy.small.source().add_space_prefix = false;
  const Spm spm = toy.build();
  CHECK(spm.encode("hello", plain) == Ids{toy.hello});
  CHECK(spm.encode(" hello", plain) == Ids{toy.space_hello});
}

TEST_CASE("BOS and EOS are added when the vocabulary and the caller ask for them") {
  Toy toy;
  toy.small.source().add_eos = true;
  const Spm spm = toy.build();
  CHECK(spm.encode("hello") == Ids{1, toy.space_hello, 2});
  CHECK(spm.encode("") == Ids{1, 2});
  CHECK(spm.encode("hello", plain) == Ids{toy.space_hello});
}

TEST_CASE("what no token covers becomes its bytes") {
  Toy toy;
  const Spm spm = toy.build();
  CHECK(spm.encode("\xC3\xBC", plain) == Ids{toy.space, toy.byte0 + 0xC3, toy.byte0 + 0xBC});
  CHECK(spm.encode("\xFF", plain) == Ids{toy.space, toy.byte0 + 0xFF});
  CHECK(spm.encode(std::string_view("\0", 1), plain) == Ids{toy.space, toy.byte0});
  CHECK(text_of(spm, spm.encode("z\xC3\xBC", plain)) == " z\xC3\xBC");
}

TEST_CASE("without byte tokens the unknown token stands for each byte, and without that nothing") {
  SmallVocabulary small("llama");
  small.add("<unk>", TokenType::unknown);
  const TokenId a = small.add("a");
  small.source().add_space_prefix = false;
  CHECK(Spm(small.build()).encode("a\xC3\xBC", plain) == Ids{a, 0, 0});
  SmallVocabulary bare("llama");
  bare.add("a");
  bare.source().add_space_prefix = false;
  CHECK(Spm(bare.build()).encode("xax", plain) == Ids{0});
}

TEST_CASE("a byte token is spelled with two digits, and of two for one byte the first counts") {
  SmallVocabulary small("llama");
  small.add("<unk>", TokenType::unknown);
  for (const char* text :
       {"[0x41>", "<0x41]", "<0X41>", "<0x4G>", "<0x4/>", "<0x4:>", "<0x4@>", "<0x4a>", "<0x041>", "<0x1>"})
    small.add(text, TokenType::byte);
  small.source().add_space_prefix = false;
  const Spm without(small.build());
  CHECK(without.encode("AJ", plain) == Ids{0, 0});
  for (TokenId id = 1; id < without.vocabulary().size(); ++id) CHECK(text_of(without, {id}).empty());
  const TokenId first = small.add("<0x41>", TokenType::byte);
  const TokenId again = small.add("<0x41>", TokenType::byte);
  const TokenId last = small.add("<0x4A>", TokenType::byte);
  const Spm with(small.build());
  CHECK(with.encode("AJ", plain) == Ids{first, last});
  CHECK(text_of(with, {first, again, last}) == "AAJ");
}

TEST_CASE("a control token in the text counts only when it may") {
  Toy toy;
  const Spm spm = toy.build();
  const Ids typed = spm.encode("<s>hello", plain);
  CHECK(std::find(typed.begin(), typed.end(), TokenId{1}) == typed.end());
  CHECK(spm.encode("<s>hello", parsed) == Ids{1, toy.space_hello});  // a space goes after a special token too
  CHECK(spm.encode("a</s>", parsed) == Ids{toy.space_a, 2});
}

TEST_CASE("a user-defined token is always found, the longest first") {
  Toy toy;
  const TokenId two = toy.small.add("  ", TokenType::user_defined);
  const TokenId three = toy.small.add("   ", TokenType::user_defined);
  toy.small.source().add_space_prefix = false;
  const Spm spm = toy.build();
  CHECK(spm.encode("a     a", plain) == Ids{toy.a, three, two, toy.a});
  CHECK(text_of(spm, {toy.a, three, two}) == "a     ");
}

TEST_CASE("Phi-3 drops white space after its special tokens, but not after <s>") {
  Toy toy;
  toy.small.source().name = "Phi-3 mini";
  const TokenId user = toy.small.add("<|user|>", TokenType::control);
  const Spm spm = toy.build();
  CHECK(spm.encode("<|user|> \n hello", parsed) == Ids{user, toy.space_hello});
  CHECK(spm.encode("<|user|>hello<|user|> ", parsed) == Ids{user, toy.space_hello, user});
  CHECK(spm.encode("<|user|>\xC3\xBC", parsed) == Ids{user, toy.space, toy.byte0 + 0xC3, toy.byte0 + 0xBC});
  CHECK(spm.encode("<s> hello", parsed) == Ids{1, toy.space, toy.space_hello});
  CHECK(spm.encode("<unk> hello", parsed) == Ids{0, toy.space, toy.space_hello});
  const TokenId end = toy.small.add("<|endoftext|>", TokenType::control);
  for (const char* name : {"Phi-3", "phi3 mini", "PHI3"}) {
    toy.small.source().name = name;
    const Spm same = toy.build();
    CHECK(same.encode("<|user|> hello", parsed) == Ids{user, toy.space_hello});
    CHECK(same.encode("<|endoftext|> hello", parsed) == Ids{end, toy.space, toy.space_hello});
  }
  toy.small.source().name = "Phi 2";
  CHECK(toy.build().encode("<|user|> hello", parsed) == Ids{user, toy.space, toy.space_hello});
}

TEST_CASE("control and unknown tokens are shown only on demand") {
  Toy toy;
  const Spm spm = toy.build();
  CHECK(text_of(spm, {1, toy.space_hello, 0, 2}, true) == "<s> hello<unk></s>");
  CHECK(text_of(spm, {1, toy.space_hello, 0, 2}, false) == " hello");
}

TEST_CASE("a token that reaches across a space is found although words are cut at spaces") {
  Toy toy;
  const TokenId across = toy.small.add("a\u2581a", TokenType::normal, -0.5F);
  toy.small.source().add_space_prefix = false;
  CHECK(toy.build().encode("a a hello", plain) == Ids{across, toy.space_hello});
  CHECK(toy.build().encode("b a", plain) == Ids{toy.b, toy.space_a});
}

TEST_CASE("infinite scores order deterministically and harm nothing") {
  Toy toy;
  toy.small.add("bb", TokenType::normal, std::numeric_limits<float>::infinity());
  toy.small.add("bbb", TokenType::normal, -std::numeric_limits<float>::infinity());
  const Spm spm = toy.build();
  CHECK(text_of(spm, spm.encode("bbbbb", plain)) == " bbbbb");
}

TEST_CASE("smaller scores come later in the order of merges, and both zeros are one") {
  using detail::descending_order;
  constexpr float inf = std::numeric_limits<float>::infinity();
  CHECK(descending_order(0.0F) == descending_order(-0.0F));
  CHECK(descending_order(inf) < descending_order(2.0F));
  CHECK(descending_order(2.0F) < descending_order(1.0F));
  CHECK(descending_order(1.0F) < descending_order(0.0F));
  CHECK(descending_order(0.0F) < descending_order(-1.0F));
  CHECK(descending_order(-1.0F) < descending_order(-2.0F));
  CHECK(descending_order(-2.0F) < descending_order(-inf));
}

TEST_CASE("a long run of one character is joined to the end") {
  SmallVocabulary small("llama");
  small.source().add_space_prefix = false;
  std::string text = "x";
  for (int power = 0; power < 8; ++power, text += text)
    small.add(text, TokenType::normal, static_cast<float>(-power));
  const Spm spm(small.build());
  const Ids ids = spm.encode(std::string(128 * 1000 + 5, 'x'), plain);
  CHECK(ids.size() == 1002);
  CHECK(ids.front() == 7);
  CHECK(ids[1000] == 2);
  CHECK(ids[1001] == 0);
}

TEST_CASE("a word of any length is joined as the rule says") {
  struct Case {
    std::vector<std::pair<const char*, float>> tokens;
    const char* word;
    std::vector<const char*> joined;
  };
  const std::vector<Case> cases = {
      {{{"ab", -2}, {"abab", -1}}, "abab", {"abab"}},                 // the longer one is better
      {{{"ab", -1}, {"abc", -2}, {"cd", -2}}, "abcd", {"abc", "d"}},  // of equal scores the left one
      {{{"bc", -1}, {"abc", -2}, {"ab", -3}}, "abc", {"abc"}},
      {{{"bc", -1}, {"ab", -2}}, "abc", {"a", "bc"}},
      {{{"aa", -1}}, "aaa!", {"aa", "a", "!"}},
  };
  for (const Case& each : cases) {
    SmallVocabulary small("llama");
    small.source().add_space_prefix = false;
    for (const char* c : {"a", "b", "c", "d", "!"}) small.add(c, TokenType::normal, -9);
    for (const auto& [text, score] : each.tokens) small.add(text, TokenType::normal, score);
    const Spm spm(small.build());
    for (const std::size_t times : {std::size_t{1}, std::size_t{2000}}) {
      CAPTURE(each.word);
      CAPTURE(times);
      std::string text;
      std::vector<std::string> expected;
      for (std::size_t i = 0; i < times; ++i) {
        text += each.word;
        expected.insert(expected.end(), each.joined.begin(), each.joined.end());
      }
      std::vector<std::string> found;
      for (const TokenId id : spm.encode(text, plain)) found.emplace_back(spm.vocabulary().text(id));
      CHECK((found == expected));
    }
  }
}

TEST_CASE(
    "Gemma 4's pieces are joined by the rank of merges, and never across the end of a run of newlines") {
  SmallVocabulary small("gemma4");
  small.add("<pad>", TokenType::control);
  small.add("<eos>", TokenType::control);
  const TokenId bos = small.add("<bos>", TokenType::control);
  const TokenId byte0 = small.add_bytes();
  const TokenId a = small.add("a"), b = small.add("b"), space = small.add("\u2581");
  const TokenId line = small.add("\n"), lines = small.add("\n\n"), line_a = small.add("\na");
  const TokenId ab = small.add("ab"), space_a = small.add("\u2581a"), aa = small.add("aa");
  const TokenId long_lines = small.add("\n\n\n\n");  // no merge leads there
  for (const auto* merge : {"\u2581 a", "a b", "\n a", "\n \n", "a a", "a q"}) small.merge(merge);
  small.source().bos = bos;
  const Vocabulary vocabulary = small.build();
  CHECK(vocabulary.joins_by_rank());
  CHECK(vocabulary.add_bos());
  CHECK(vocabulary.ignored_merges() == 1);  // "a q": there is no q
  const Spm spm{vocabulary};
  CHECK(spm.encode("ab", plain) == Ids{ab});           // no space before the first word
  CHECK(spm.encode(" ab", plain) == Ids{space_a, b});  // rank 0 before rank 1
  CHECK(spm.encode("aab", plain) == Ids{a, ab});       // rank 1 before rank 4
  CHECK(spm.encode("aa a", plain) == Ids{aa, space_a});
  CHECK(spm.encode("a\na", plain) == Ids{a, line, a});  // "\na" is a token, but lines end
  CHECK(spm.encode("\n\na", plain) == Ids{lines, a});
  CHECK(spm.encode("\n\n\n", plain) == Ids{lines, line});
  CHECK(spm.encode("\n\n\n\n", plain) == Ids{long_lines});
  CHECK(spm.encode(std::string(7, '\n'), plain) == Ids{lines, lines, lines, line});  // longer than any token
  CHECK(spm.encode("z", plain) == Ids{byte0 + 'z'});
  CHECK(spm.encode("  ", plain) == Ids{space, space});
  CHECK(spm.encode("", {.add_special = true, .parse_special = false}) == Ids{bos});
  CHECK(line_a != no_token);
  std::string back;
  for (const TokenId id : spm.encode(" ab\n\nz", plain)) spm.append_piece(id, false, back);
  CHECK(back == " ab\n\nz");
}

}  // namespace spm_test
