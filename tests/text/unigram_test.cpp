// SPDX-License-Identifier: Apache-2.0

#include "mica/text/unigram.hpp"

#include "mica/text/token_pair.hpp"
#include "mica/text/tokenizer.hpp"
#include "text/small_charsmap.hpp"
#include "text/small_vocabulary.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace unigram_test {

using namespace mica::text;
using mica::test::SmallCharsmap;
using mica::test::SmallVocabulary;

namespace {

using Ids = std::vector<TokenId>;

constexpr EncodeOptions plain = {.add_special = false, .parse_special = false};
constexpr EncodeOptions parsed = {.add_special = false, .parse_special = true};

/// The special tokens of XLM-RoBERTa, then pieces.
struct Toy {
  SmallVocabulary small{"t5"};
  std::string charsmap;
  TokenId bos, pad, eos, unk, space, a, b, c, ab, bc, space_a, space_abc;

  Toy() {
    bos = small.add("<s>", TokenType::control);
    pad = small.add("<pad>", TokenType::control);
    eos = small.add("</s>", TokenType::control);
    unk = small.add("<unk>", TokenType::unknown);
    space = small.add("\u2581", TokenType::normal, -4);
    a = small.add("a", TokenType::normal, -5);
    b = small.add("b", TokenType::normal, -5);
    c = small.add("c", TokenType::normal, -3);
    ab = small.add("ab", TokenType::normal, -7);
    bc = small.add("bc", TokenType::normal, -6);
    space_a = small.add(
        "\u2581"
        "a",
        TokenType::normal, -6);
    space_abc = small.add(
        "\u2581"
        "abc",
        TokenType::normal, -9);
    VocabularySource& source = small.source();
    source.bos = bos;
    source.eos = source.separator = eos;
    source.unknown = unk;
    source.add_bos = source.add_eos = true;
    source.add_space_prefix = source.remove_extra_spaces = true;
  }

  Unigram build() {
    small.source().charsmap = charsmap;
    return Unigram(small.build());
  }
};

/// The message of the error that a charsmap is refused with; empty when it is not.
std::string refusal(std::string_view charsmap) {
  try {
    const detail::Charsmap map(charsmap);
  } catch (const mica::Error& error) {
    CHECK(error.code() == mica::ErrorCode::file);
    return error.message();
  }
  return {};
}

std::string replaced(const detail::Charsmap& map, std::string_view text) {
  const detail::Charsmap::Match match = map.longest(text);
  return match.bytes == 0 ? "-" : std::to_string(match.bytes) + std::string(match.text);
}

}  // namespace

TEST_CASE("of all spellings the one with the highest sum of scores is chosen") {
  Toy toy;
  const Unigram t = toy.build();
  CHECK(t.encode("abc", plain) == Ids{toy.space_abc});                     // -9
  CHECK(t.encode("aab", plain) == Ids{toy.space_a, toy.ab});               // -13 and not -16
  CHECK(t.encode("babc", plain) == Ids{toy.space, toy.b, toy.ab, toy.c});  // ab c: -10, a bc: -11
  CHECK(t.encode("", plain).empty());
  CHECK(t.encode("   ", plain).empty());
}

TEST_CASE("of equal sums the spelling whose last token begins first is chosen") {
  SmallVocabulary small("t5");
  small.add("<unk>", TokenType::unknown);
  const TokenId a = small.add("a", TokenType::normal, -1);
  const TokenId aa = small.add("aa", TokenType::normal, -1);
  const Unigram t(small.build());
  CHECK(t.encode("aaa", plain) == Ids{a, aa});
}

TEST_CASE("texts begin and end as the file says, T5's end with EOS alone") {
  Toy toy;
  CHECK(toy.build().encode("abc") == Ids{toy.bos, toy.space_abc, toy.eos});
  SmallVocabulary t5("t5");
  t5.add("<pad>", TokenType::control);
  const TokenId eos = t5.add("</s>", TokenType::control);
  t5.add("<unk>", TokenType::unknown);
  const TokenId a = t5.add("a");
  const Unigram t(t5.build());
  CHECK(t.encode("a") == Ids{a, eos});
  CHECK(t.vocabulary().special().unknown == TokenId{2});
  CHECK(t.vocabulary().special().padding == TokenId{0});
}

TEST_CASE("characters without a token are unknown, those in a row as one") {
  Toy toy;
  const Unigram t = toy.build();
  CHECK(t.encode("xyz", plain) == Ids{toy.space, toy.unk});
  CHECK(t.encode("x\u00FCab x", plain) == Ids{toy.space, toy.unk, toy.ab, toy.space, toy.unk});
  CHECK(t.encode("\xFF\xC3", plain) == Ids{toy.space, toy.unk});
}

TEST_CASE("characters without a token become bytes when all bytes have tokens") {
  Toy toy;
  const TokenId byte0 = toy.small.add_bytes();
  const AnyTokenizer t(toy.build().vocabulary());
  CHECK(t.encode("\u00FCx", plain) == Ids{toy.space, byte0 + 0xC3, byte0 + 0xBC, byte0 + 'x'});
  CHECK(t.decode(t.encode("ab \u00FC")) == "ab \u00FC");
}

TEST_CASE("spaces at the ends and repeated ones are dropped only where the file says so") {
  Toy toy;
  CHECK(toy.build().encode("  a   a ", plain) == Ids{toy.space_a, toy.space_a});
  toy.small.source().remove_extra_spaces = false;
  CHECK(toy.build().encode(" a  a ", plain) ==
        Ids{toy.space, toy.space_a, toy.space, toy.space_a, toy.space});
  toy.small.source().add_space_prefix = false;
  CHECK(toy.build().encode("a a", plain) == Ids{toy.a, toy.space_a});
}

TEST_CASE("a token that reaches across a space is found") {
  Toy toy;
  const TokenId across = toy.small.add(
      "a\u2581"
      "a",
      TokenType::normal, -1);
  CHECK(toy.build().encode("ba a", plain) == Ids{toy.space, toy.b, across});
}

TEST_CASE("special tokens are found when they may be, user-defined ones always") {
  Toy toy;
  const TokenId mask = toy.small.add("<mask>", TokenType::control);
  const TokenId user = toy.small.add("<x>", TokenType::user_defined);
  const TokenId unused = toy.small.add("bbb", TokenType::unused, 100);
  const Unigram t = toy.build();
  CHECK(t.encode("a <mask> a", parsed) == Ids{toy.space_a, mask, toy.space_a});
  CHECK(t.encode("a<x>a", plain) == Ids{toy.space_a, user, toy.space_a});
  CHECK(t.encode("bbb", plain) == Ids{toy.space, toy.b, toy.b, toy.b});
  CHECK(unused != no_token);
}

TEST_CASE("the text comes back without the space before its first word") {
  Toy toy;
  const AnyTokenizer t(toy.build().vocabulary());
  CHECK(t.decode(t.encode("abc a  b")) == "abc a b");
  CHECK(t.piece(toy.space_abc) == " abc");
  CHECK(t.piece(toy.unk).empty());
  CHECK(t.piece(toy.eos, true) == "</s>");
}

TEST_CASE("a pair of XLM-RoBERTa has two separators between the texts, one of T5 has one") {
  Toy toy;
  const AnyTokenizer t(toy.build().vocabulary());
  const TokenPair pair = encode_pair(t, "a", "abc");
  CHECK(pair.ids == Ids{toy.bos, toy.space_a, toy.eos, toy.eos, toy.space_abc, toy.eos});
  CHECK(pair.second == 4);
  toy.small.source().add_separator = false;
  CHECK(encode_pair(toy.build(), "a", "abc").second == 3);
  toy.small.source().add_separator.reset();
  toy.small.source().add_bos = false;
  CHECK(encode_pair(toy.build(), "a", "abc").ids == Ids{toy.space_a, toy.eos, toy.space_abc, toy.eos});
}

TEST_CASE("a pair has only those special tokens that the vocabulary has and adds") {
  Toy toy;
  VocabularySource& source = toy.small.source();
  source.add_eos = false;
  source.add_separator = true;
  CHECK(encode_pair(toy.build(), "a", "abc").ids == Ids{toy.bos, toy.space_a, toy.eos, toy.space_abc});
  source.separator.reset();
  CHECK(encode_pair(toy.build(), "a", "abc").ids == Ids{toy.bos, toy.space_a, toy.eos, toy.space_abc});
  source.eos = no_token;
  const TokenPair bare = encode_pair(toy.build(), "a", "abc");
  CHECK(bare.ids == Ids{toy.bos, toy.space_a, toy.space_abc});
  CHECK(bare.second == 2);
}

TEST_CASE("a character that is no token may begin one") {
  Toy toy;
  const TokenId xy = toy.small.add("xy", TokenType::normal, -8);
  const Unigram t = toy.build();
  CHECK(t.encode("xya", plain) == Ids{toy.space, xy, toy.a});
  CHECK(t.encode("xa", plain) == Ids{toy.space, toy.unk, toy.a});
}

TEST_CASE("a replacement for a text of more than 64 bytes is never taken") {
  const std::string longest(64, 'a');
  const detail::Charsmap map(SmallCharsmap({{longest, "b"}, {longest + "a", "c"}}).bytes());
  CHECK(replaced(map, longest) == "64b");
  CHECK(replaced(map, longest + "aa") == "64b");
  CHECK(replaced(map, longest.substr(1)) == "-");
}

TEST_CASE("the longest replacement of a charsmap counts, before spaces are looked at") {
  Toy toy;
  toy.charsmap =
      SmallCharsmap(
          {{"\u3000", " "}, {"\uFF41", "a"}, {"x", "b"}, {"xy", "c"}, {"z", ""}, {"\u01C6", "ab c"}})
          .bytes();
  const Unigram t = toy.build();
  CHECK(t.encode("\uFF41\u3000\u3000\uFF41\u3000", plain) == Ids{toy.space_a, toy.space_a});
  CHECK(t.encode("xxy", plain) == Ids{toy.space, toy.bc});
  CHECK(t.encode("azbc", plain) == Ids{toy.space_abc});
  CHECK(t.encode("z", plain).empty());
  CHECK(t.encode("\u01C6", plain) == Ids{toy.space, toy.ab, toy.space, toy.c});
  CHECK(t.bytes() > t.vocabulary().bytes());
}

TEST_CASE("a charsmap that is cut, or whose values lead outside, is refused") {
  const SmallCharsmap good = {{"a", "b"}, {"ab", ""}};
  const std::string bytes = good.bytes();
  CHECK(refusal(bytes).empty());
  CHECK(refusal("").empty());
  CHECK(refusal(std::string(4, '\0')).find("another size") != std::string::npos);  // no trie
  for (std::size_t n = 1; n < bytes.size(); ++n) CHECK_FALSE(refusal(bytes.substr(0, n)).empty());
  SmallCharsmap far = good;
  far.units[5] = 0x8000'0000U | 3;
  CHECK(refusal(far.bytes()).find("outside of its texts") != std::string::npos);
  SmallCharsmap open = good;
  open.texts.back() = 'x';
  CHECK(refusal(open.bytes()).find("without an end") != std::string::npos);
  SmallCharsmap broken = good;
  broken.texts[0] = '\xFF';
  CHECK(refusal(broken.bytes()).find("no UTF-8") != std::string::npos);
  const SmallCharsmap too_long = {{"a", std::string(513, 'b')}};
  CHECK(refusal(too_long.bytes()).find("more than 512") != std::string::npos);
}

TEST_CASE("a charsmap whose trie leads anywhere replaces nothing that it should not") {
  const detail::Charsmap good(SmallCharsmap{{"a", "b"}, {"abc", "d"}}.bytes());
  CHECK(replaced(good, "a") == "1b");
  CHECK(replaced(good, "abx") == "1b");
  CHECK(replaced(good, "abcd") == "3d");
  CHECK(replaced(good, std::string_view("a\0", 2)) == "1b");
  CHECK(replaced(good, "x") == "-");
  CHECK(replaced(good, "") == "-");
  for (const std::uint32_t unit : {0U, 0xFFFF'FFFFU, 0x7FFF'FFFFU, 0x8000'0000U, 0x361U, 0x161U}) {
    SmallCharsmap map = {{"a", "b"}, {"abc", "d"}};
    for (std::size_t at = 0; at < map.units.size(); at += 7) map.units[at] = unit;
    const std::string bytes = map.bytes();
    if (!refusal(bytes).empty()) continue;
    const detail::Charsmap hostile(bytes);
    for (const char* text : {"a", "abc", "aaaaaaaa", "\xFF\xFF", "b"})
      CHECK(hostile.longest(text).bytes <= std::string_view(text).size());
  }
  constexpr std::size_t of_a = 256 + 'a';  // the node of the only key
  for (const std::uint32_t unit :
       {0x7FFF'FC00U | 0x100U | 'a', 0x7FFF'FC00U | 0x300U | 'a', std::uint32_t{'a'}}) {
    SmallCharsmap map = {{"a", "b"}};
    map.units[of_a] = unit;  // its value is outside of the trie, or it has none
    CHECK(replaced(detail::Charsmap(map.bytes()), "a") == "-");
  }
  SmallCharsmap no_value = {{"a", "b"}};
  no_value.units[512] = 0;
  CHECK(replaced(detail::Charsmap(no_value.bytes()), "a") == "-");
  SmallCharsmap circle = {{"a", "b"}};
  for (std::size_t at = 256; at < 512; ++at) circle.units[at] = static_cast<std::uint32_t>(at & 0xFF);
  const detail::Charsmap endless(circle.bytes());  // each unit is its own parent
  CHECK(endless.longest(std::string(1 << 20, 'a')).bytes == 0);
}

TEST_CASE("a long text without a space, and scores without bounds, harm nothing") {
  Toy toy;
  std::string longest = "c";
  while (longest.size() < 1024) {
    longest += longest;
    toy.small.add(longest, TokenType::normal, -1);
  }
  const Unigram t = toy.build();
  const Ids ids = t.encode(std::string(std::size_t{1} << 14, 'c'), plain);
  CHECK(ids.size() == 1 + (1 << 14) / 512);  // of 512 bytes each: longer tokens are not found
  CHECK(t.encode(std::string(std::size_t{1} << 20, 'q'), plain) == Ids{toy.space, toy.unk});
  constexpr float inf = std::numeric_limits<float>::infinity();
  toy.small.add("q", TokenType::normal, inf);
  toy.small.add("qq", TokenType::normal, -inf);
  const AnyTokenizer extreme(toy.build().vocabulary());
  CHECK(extreme.decode(extreme.encode("qqqqq")) == "qqqqq");
}

TEST_CASE("a vocabulary of nothing but special tokens finds nothing") {
  SmallVocabulary small("t5");
  small.add("<unk>", TokenType::unknown);
  CHECK(Unigram(small.build()).encode("abc", plain).empty());  // no unknown token has the id 2
  small.source().unknown = 0;
  CHECK(Unigram(small.build()).encode("abc", plain) == Ids{0});
}

}  // namespace unigram_test
