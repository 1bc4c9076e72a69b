// SPDX-License-Identifier: Apache-2.0

#include "mica/text/wordpiece.hpp"

#include "mica/text/token_pair.hpp"
#include "mica/text/tokenizer.hpp"
#include "text/small_vocabulary.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace wordpiece_test {

using namespace mica::text;
using mica::test::SmallVocabulary;

namespace {

using Ids = std::vector<TokenId>;

constexpr EncodeOptions plain = {.add_special = false, .parse_special = false};
constexpr EncodeOptions parsed = {.add_special = false, .parse_special = true};

/// BERT's special tokens, then words and their continuations.
struct Toy {
  SmallVocabulary small{"bert"};
  TokenId pad, unk, cls, sep, mask, un, aff, able, cafe, e, comma, dollar, kanji, hello, jamo;

  Toy() {
    pad = small.add("[PAD]", TokenType::control);
    unk = small.add("[UNK]", TokenType::control);
    cls = small.add("[CLS]", TokenType::control);
    sep = small.add("[SEP]", TokenType::control);
    mask = small.add("[MASK]", TokenType::control);
    un = small.add("\u2581un");
    aff = small.add("aff");
    able = small.add("able");
    cafe = small.add("\u2581cafe");
    e = small.add("e");
    comma = small.add("\u2581,");
    dollar = small.add("\u2581$");
    kanji = small.add("\u2581\u6F22");
    hello = small.add("\u2581hello");
    jamo = small.add("\u2581\u1112\u1161\u11AB");  // decomposed Hangul
  }

  WordPiece build() { return WordPiece(small.build()); }
};

std::string text_of(const AnyTokenizer& tokenizer, const Ids& ids) { return tokenizer.decode(ids); }

}  // namespace

TEST_CASE("a word is the longest tokens from left to right, or unknown as a whole") {
  Toy toy;
  const WordPiece t = toy.build();
  CHECK(t.encode("unaffable", plain) == Ids{toy.un, toy.aff, toy.able});
  CHECK(t.encode("hello unable", plain) == Ids{toy.hello, toy.un, toy.able});
  CHECK(t.encode("unaffx hello", plain) == Ids{toy.unk, toy.hello});
  CHECK(t.encode("able", plain) == Ids{toy.unk});  // continues a word, begins none
  CHECK(t.encode("", plain).empty());
  CHECK(t.encode(" \n\t ", plain).empty());
}

TEST_CASE("a special token that is half of a character leaves U+FFFD on both of its sides") {
  Toy toy;
  const TokenId half = toy.small.add("\xA9", TokenType::user_defined);  // the end of U+00E9
  const TokenId lead = toy.small.add("\xE6", TokenType::control);       // the begin of U+6F22
  const WordPiece t = toy.build();
  CHECK(t.encode("caf\u00E9 hello", plain) == Ids{toy.unk, half, toy.hello});
  CHECK(t.encode("\xC3\xA9", plain) == Ids{half});  // WordPiece drops U+FFFD
  CHECK(t.encode("hello \u6F22", parsed) == Ids{toy.hello, lead});
  CHECK(t.encode("hello \u6F22", plain) == Ids{toy.hello, toy.kanji});
}

TEST_CASE("places where no special token begins are those of the text, whatever stands before them") {
  Toy toy;
  const WordPiece t = toy.build();
  const std::size_t literal[] = {6};
  const EncodeOptions options{.add_special = false, .parse_special = true, .literal = literal};
  const Ids ids = t.encode("hello\xFF[SEP]", options);
  CHECK(std::count(ids.begin(), ids.end(), toy.sep) == 0);
  CHECK(t.encode("hello\xFF[SEP]", parsed) == Ids{toy.hello, toy.sep});
}

TEST_CASE("a text stands between CLS and SEP, whatever the flags of the file") {
  Toy toy;
  CHECK(toy.build().encode("hello") == Ids{toy.cls, toy.hello, toy.sep});
  CHECK(toy.build().encode("") == Ids{toy.cls, toy.sep});
  toy.small.source().add_bos = false;
  toy.small.source().add_eos = false;
  CHECK(toy.build().encode("hello") == Ids{toy.cls, toy.hello, toy.sep});
  const SpecialIds special = toy.build().vocabulary().special();
  CHECK(special.classifier == toy.cls);
  CHECK(special.separator == toy.sep);
  CHECK(special.mask == toy.mask);
  CHECK(special.padding == toy.pad);
  CHECK(special.unknown == toy.unk);
}

TEST_CASE("the special ids of a file win over the names of tokens") {
  SmallVocabulary small("bert");
  const TokenId unk = small.add("<unk>", TokenType::control);
  const TokenId first = small.add("<s>", TokenType::control);
  const TokenId last = small.add("</s>", TokenType::control);
  const TokenId a = small.add(
      "\u2581"
      "a");
  small.source().classifier = first;
  small.source().eos = last;
  small.source().unknown = unk;
  const WordPiece t(small.build());
  CHECK(t.encode("a b") == Ids{first, a, unk, last});
  CHECK(t.vocabulary().special().bos == first);
  CHECK(t.vocabulary().special().separator == last);
}

TEST_CASE("texts are read in lower case and without accents") {
  Toy toy;
  const WordPiece t = toy.build();
  CHECK(t.encode("HeLLo", plain) == Ids{toy.hello});
  CHECK(t.encode("Caf\u00C9", plain) == Ids{toy.cafe});
  CHECK(t.encode("cafe\u0301", plain) == Ids{toy.cafe});
  CHECK(t.encode("\uD55C", plain) == Ids{toy.jamo});
}

TEST_CASE("a vocabulary with letter case keeps it, and accents unless its file says otherwise") {
  Toy toy;
  const TokenId accented = toy.small.add(
      "\u2581"
      "Caf\u00C9");
  toy.small.source().lower_case = false;
  CHECK(toy.build().encode("Caf\u00C9", plain) == Ids{accented});
  CHECK(toy.build().encode("HeLLo", plain) == Ids{toy.unk});
  const TokenId bare = toy.small.add(
      "\u2581"
      "CafE");
  toy.small.source().strip_accents = true;
  CHECK(toy.build().encode("Caf\u00C9", plain) == Ids{bare});
  toy.small.source().lower_case = true;
  toy.small.source().strip_accents = false;
  const TokenId lower = toy.small.add(
      "\u2581"
      "caf\u00E9");
  toy.small.source();
  CHECK(toy.build().encode("CAF\u00C9", plain) == Ids{lower});
}

TEST_CASE("punctuation, ASCII's symbols and ideographs are words by themselves") {
  Toy toy;
  const WordPiece t = toy.build();
  CHECK(t.encode("hello,hello", plain) == Ids{toy.hello, toy.comma, toy.hello});
  CHECK(t.encode("$hello", plain) == Ids{toy.dollar, toy.hello});
  CHECK(t.encode("\u6F22\u6F22hello\u6F22", plain) == Ids{toy.kanji, toy.kanji, toy.hello, toy.kanji});
  CHECK(t.encode("hello\u3002", plain) == Ids{toy.hello, toy.unk});
  CHECK(t.encode("hello\u2260", plain) == Ids{toy.hello, toy.unk});  // decomposes into = and a mark
}

TEST_CASE("control characters are dropped inside of words, white space of Unicode ends them") {
  Toy toy;
  const WordPiece t = toy.build();
  CHECK(t.encode(std::string_view("he\0l\x01lo\x7F", 8), plain) == Ids{toy.hello});
  CHECK(t.encode("he\u200Bllo\uFEFF", plain) == Ids{toy.hello});
  CHECK(t.encode("he\uFFFDllo", plain) == Ids{toy.hello});
  CHECK(t.encode("hello\u3000hello\u00A0hello\r\nhello", plain) == Ids(4, toy.hello));
  for (const std::string space :
       {" ",      "\t",     "\n",     "\r",     "\u00A0", "\u1680", "\u2000", "\u2001",
        "\u2002", "\u2003", "\u2004", "\u2005", "\u2006", "\u2007", "\u2008", "\u2009",
        "\u200A", "\u2028", "\u2029", "\u202F", "\u205F", "\u3000"}) {
    CAPTURE(space);
    CHECK(t.encode("hello" + space + "hello", plain) == Ids(2, toy.hello));
  }
}

TEST_CASE("bytes that are no UTF-8 are dropped") {
  Toy toy;
  const WordPiece t = toy.build();
  CHECK(t.encode("he\xFFllo\xC3", plain) == Ids{toy.hello});
  CHECK(t.encode("\xED\xA0\x80hello", plain) == Ids{toy.hello});  // a surrogate
  CHECK(t.encode("\xF4\x90\x80\x80", plain).empty());
}

TEST_CASE("a word of more than a hundred characters is unknown") {
  Toy toy;
  const TokenId a = toy.small.add(
      "\u2581"
      "a");
  const TokenId more = toy.small.add("a");
  const WordPiece t = toy.build();
  Ids hundred(100, more);
  hundred[0] = a;
  CHECK(t.encode(std::string(100, 'a'), plain) == hundred);
  CHECK(t.encode(std::string(101, 'a'), plain) == Ids{toy.unk});
  CHECK(t.encode(std::string(std::size_t{1} << 20, 'a'), plain) == Ids{toy.unk});
  std::string accented;
  for (int i = 0; i < 100; ++i) accented += "\u00E1\u0301";
  CHECK(t.encode(accented, plain) == hundred);  // marks do not count
}

TEST_CASE("the mark of a word's beginning in a text is no beginning of a word") {
  Toy toy;
  CHECK(toy.build().encode("un\u2581hello", plain) == Ids{toy.unk});
}

TEST_CASE("a control token in the text counts only when it may") {
  Toy toy;
  const WordPiece t = toy.build();
  CHECK(t.encode("hello[MASK]un", parsed) == Ids{toy.hello, toy.mask, toy.un});
  CHECK(t.encode("[MASK]", plain) == Ids{toy.unk, toy.unk, toy.unk});
}

TEST_CASE("words come back with spaces between them") {
  Toy toy;
  const AnyTokenizer t = make_tokenizer(toy.small.build());
  CHECK(text_of(t, t.encode("Unaffable hello, CAF\u00C9")) == "unaffable hello , cafe");
  CHECK(t.decode(t.encode("hello, un"), {.tidy_spaces = true}) == "hello, un");
  CHECK(t.piece(toy.hello) == " hello");
  CHECK(t.piece(toy.able) == "able");
  CHECK(t.piece(toy.cls).empty());
  CHECK(t.piece(toy.cls, true) == "[CLS]");
}

TEST_CASE("a pair has one separator between the texts and one behind them") {
  Toy toy;
  const AnyTokenizer t = make_tokenizer(toy.small.build());
  const TokenPair pair = encode_pair(t, "hello", "un[SEP]able");
  CHECK(pair.ids == Ids{toy.cls, toy.hello, toy.sep, toy.un, toy.unk, toy.unk, toy.unk, toy.unk, toy.sep});
  CHECK(pair.second == 3);
  CHECK(encode_pair(t, "", "").ids == Ids{toy.cls, toy.sep, toy.sep});
  for (const bool separator : {false, true}) {
    for (const bool eos : {false, true}) {
      toy.small.source().add_separator = separator;
      toy.small.source().add_eos = eos;
      Ids expected = {toy.cls, toy.hello, toy.sep, toy.un, toy.sep};
      if (separator && eos) expected.insert(expected.begin() + 3, toy.sep);
      CHECK(encode_pair(toy.build(), "hello", "un").ids == expected);
    }
  }
}

TEST_CASE("ideographs are those of the blocks that BERT names, but for the gap of Hugging Face") {
  struct Block {
    std::uint32_t first, last;
  };
  for (const Block block :
       {Block{0x3400, 0x4DBF}, Block{0x4E00, 0x9FFF}, Block{0xF900, 0xFAFF}, Block{0x20000, 0x2A6DF},
        Block{0x2A700, 0x2B81F}, Block{0x2B920, 0x2CEAF}, Block{0x2F800, 0x2FA1F}}) {
    CAPTURE(block.first);
    CHECK(detail::is_ideograph(block.first));
    CHECK(detail::is_ideograph(block.last));
    CHECK_FALSE(detail::is_ideograph(block.first - 1));
    CHECK_FALSE(detail::is_ideograph(block.last + 1));
  }
  Toy toy;
  const TokenId rare = toy.small.add("\u2581\U00020000");
  CHECK(toy.build().encode("hello\U00020000\U00020000", plain) == Ids{toy.hello, rare, rare});
}

TEST_CASE("the tables of characters have what their functions promise") {
  using namespace detail;
  const auto lower = [](std::uint32_t c) {
    std::string out;
    lower_case(c, [&](std::uint32_t each) { append_character(each, out); });
    return out;
  };
  const auto bare = [](std::uint32_t c) {
    std::string out;
    without_accents(c, [&](std::uint32_t each) { append_character(each, out); });
    return out;
  };
  CHECK(lower('Z') == "z");
  CHECK(lower(0x130) == "i\u0307");
  CHECK(lower(0x3A3) == "\u03C3");
  CHECK(lower(0x10400) == "\U00010428");
  CHECK(lower(0xDF) == "\u00DF");
  CHECK(lower(0x100) == "\u0101");
  CHECK(lower(0x101) == "\u0101");  // between two capitals
  CHECK(lower(0x1F600) == "\U0001F600");
  CHECK(bare(0xE9) == "e");
  CHECK(bare(0x1EA4) == "A");  // two accents
  CHECK(bare(0x301).empty());
  CHECK(bare(0xAC01) == "\u1100\u1161\u11A8");
  CHECK(bare(0xAC00) == "\u1100\u1161");
  CHECK(bare(0x9CB) == "\u09C7\u09BE");
  CHECK(bare(0xF900) == "\u8C48");
  CHECK(bare(0x1D15E) == "\U0001D157\U0001D165");
  CHECK(bare(0x2F800) == "\u4E3D");
  CHECK(bare(0x1F600) == "\U0001F600");
  CHECK(is_punctuation('_'));
  CHECK(is_punctuation(0xBF));
  CHECK_FALSE(is_punctuation('a'));
  CHECK_FALSE(is_punctuation(' '));
  CHECK(is_dropped(0xE000));
  CHECK_FALSE(is_dropped(' '));
  std::string_view four = "\U0001F600!";
  CHECK(take_character(four) == 0x1F600);
  CHECK(take_character(four) == '!');
}

}  // namespace wordpiece_test
