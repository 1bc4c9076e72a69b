// SPDX-License-Identifier: Apache-2.0

#include "mica/text/bpe.hpp"

#include "mica/base/error.hpp"
#include "mica/base/rng.hpp"
#include "text/small_vocabulary.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bpe_test {

using namespace mica::text;
using mica::test::SmallVocabulary;

TEST_CASE("the byte alphabet spells every byte as a printable character and reads it back") {
  std::string bytes;
  for (unsigned byte = 0; byte < 256; ++byte) bytes.push_back(static_cast<char>(byte));
  std::string spelled, back;
  append_spelled(bytes, spelled);
  CHECK(is_utf8(spelled));
  CHECK(spelled.find(' ') == std::string::npos);
  append_unspelled(spelled, back);
  CHECK(back == bytes);
  std::string space;
  append_spelled(" \n", space);
  CHECK(space == "\u0120\u010A");
}

TEST_CASE("what is not of the byte alphabet stays as it is") {
  std::string out;
  append_unspelled("a\u0144\u2581\xFF\xC4", out);
  CHECK(out == "a\u0144\u2581\xFF\xC4");
}

TEST_CASE("of equal pairs the first merge counts, and unknown pairs have none") {
  const std::vector<Merge> merges = {{1, 2, 3}, {1, 2, 4}, {3, 3, 5}};
  const detail::PairIndex index(merges);
  CHECK(index.find(1, 2).id == 3);
  CHECK(index.find(1, 2).order == 0);
  CHECK(index.find(3, 3).id == 5);
  CHECK(index.find(3, 3).order == 2);
  CHECK(index.find(2, 1).id == no_token);
  CHECK(index.find(no_token, no_token).id == no_token);
  CHECK(detail::PairIndex({}).find(0, 0).id == no_token);
}

TEST_CASE("merges that were chosen to collide are refused, and pairs beside them are not found") {
  constexpr std::size_t most = 512, slots = 1024;  // of 512 to 681 merges
  std::vector<Merge> merges;
  TokenId right = 0;
  for (; merges.size() < most; ++right) {
    if (mica::mix64(std::uint64_t{1} << 32 | right) % slots == 0) merges.push_back({1, right, right});
  }
  while (mica::mix64(std::uint64_t{1} << 32 | right) % slots != 0) ++right;
  const detail::PairIndex index(merges);
  CHECK(index.find(1, merges.back().right).order == most - 1);
  CHECK(index.find(1, right).id == no_token);
  merges.push_back({1, right, right});
  try {
    const detail::PairIndex full(merges);
    FAIL("it was not refused");
  } catch (const mica::Error& error) {
    CHECK(error.code() == mica::ErrorCode::file);
    CHECK(error.message() ==
          "tokenizer.ggml.merges: merge 512 collides with more than 512 others; no honest vocabulary does");
  }
}

#if defined(MICA_HAS_TEXT)

namespace {

using Ids = std::vector<TokenId>;

constexpr EncodeOptions plain = {.add_special = false, .parse_special = false};
constexpr EncodeOptions parsed = {.add_special = false, .parse_special = true};

/// The 256 bytes as tokens 0 to 255, then merges.
struct Toy {
  SmallVocabulary small{"gpt2"};

  explicit Toy(std::string_view pre = "gpt-2") {
    small.source().pre = pre;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const char c = static_cast<char>(byte);
      std::string spelled;
      append_spelled({&c, 1}, spelled);
      small.add(spelled);
    }
  }

  TokenId merge(const std::string& left, const std::string& right) {
    small.merge(left + " " + right);
    return small.add(left + right);
  }

  Bpe build() { return Bpe(small.build()); }
};

std::string text_of(const Bpe& bpe, const Ids& ids, bool show_special = true) {
  std::string out;
  for (const TokenId id : ids) bpe.append_piece(id, show_special, out);
  return out;
}

}  // namespace

TEST_CASE("pairs join by rank, the left one first, and only inside words") {
  Toy toy;
  const TokenId ll = toy.merge("l", "l");
  const TokenId he = toy.merge("h", "e");
  const TokenId hell = toy.merge("he", "ll");
  const TokenId space_hell = toy.merge("\u0120", "hell");
  const Bpe bpe = toy.build();
  CHECK(bpe.encode("hell", plain) == Ids{hell});
  CHECK(bpe.encode("hell hell", plain) == Ids{hell, space_hell});
  CHECK(bpe.encode("helll", plain) == Ids{hell, 'l'});
  CHECK(bpe.encode("hel", plain) == Ids{he, 'l'});
  CHECK(bpe.encode("lll", plain) == Ids{ll, 'l'});
  CHECK(bpe.encode("", plain).empty());
  CHECK(text_of(bpe, {hell, space_hell}) == "hell hell");
}

TEST_CASE("a lower rank wins against a pair further left") {
  Toy toy;
  const TokenId bc = toy.merge("b", "c");
  const TokenId ab = toy.merge("a", "b");
  CHECK(toy.build().encode("abc", plain) == Ids{'a', bc});
  CHECK(toy.build().encode("ab", plain) == Ids{ab});
}

TEST_CASE("only Llama 3 and its like take a word that is a token without merging") {
  for (const bool whole : {false, true}) {
    Toy toy(whole ? "llama-bpe" : "qwen2");
    const TokenId word = toy.small.add("word");
    const Ids ids = toy.build().encode("word", plain);
    CHECK(ids == (whole ? Ids{word} : Ids{'w', 'o', 'r', 'd'}));
  }
}

TEST_CASE("bytes that are no UTF-8 are read as U+FFFD, and valid text comes back") {
  const Bpe bpe = Toy().build();
  CHECK(bpe.encode("\xFF", plain) == Ids{0xEF, 0xBF, 0xBD});
  const std::string text = "a\xC3\xBC\n\t\xF0\x9F\x98\x80 \xE2\x82\xAC";
  CHECK(text_of(bpe, bpe.encode(text, plain)) == text);
  const std::string nul("a\0b", 3);
  CHECK(text_of(bpe, bpe.encode(nul, plain)) == nul);
}

TEST_CASE("a special token that is half of a character leaves U+FFFD on both of its sides") {
  Toy toy;
  const TokenId half = toy.small.add("\x9F", TokenType::user_defined);
  const Bpe bpe = toy.build();
  const Ids ids = bpe.encode("a\U0001F600b", plain);  // F0 9F 98 80
  CHECK(std::count(ids.begin(), ids.end(), half) == 1);
  CHECK(text_of(bpe, ids) == "a\uFFFD\x9F\uFFFD\uFFFDb");
}

TEST_CASE("places where no special token begins are those of the text, whatever stands before them") {
  Toy toy;
  const TokenId end = toy.small.add("<e>", TokenType::control);
  const Bpe bpe = toy.build();
  const std::size_t literal[] = {2};
  const EncodeOptions options{.add_special = false, .parse_special = true, .literal = literal};
  const std::string text = "\xFF\xFF<e>";
  CHECK(bpe.encode(text, parsed).back() == end);
  CHECK(text_of(bpe, bpe.encode(text, options)) == "\uFFFD\uFFFD<e>");
  CHECK(bpe.encode(text, options).back() == TokenId{'>'});
}

TEST_CASE("a byte that the vocabulary lacks becomes the unknown token, or nothing") {
  SmallVocabulary small("gpt2");
  small.source().pre = "gpt-2";
  const TokenId a = small.add("a");
  CHECK(Bpe(small.build()).encode("ab", plain) == Ids{a});
  const TokenId unknown = small.add("<unk>", TokenType::unknown);
  small.source().unknown = unknown;
  CHECK(Bpe(small.build()).encode("ab", plain) == Ids{a, unknown});
}

TEST_CASE("control tokens are parsed on demand and user-defined ones always") {
  Toy toy;
  const TokenId control = toy.small.add("<|go|>", TokenType::control);
  const TokenId defined = toy.small.add("<tool>", TokenType::user_defined);
  const Bpe bpe = toy.build();
  CHECK(bpe.encode("a<|go|>b", parsed) == Ids{'a', control, 'b'});
  CHECK(bpe.encode("a<|go|>b", plain).size() == 8);
  CHECK(bpe.encode("<tool><tool>x", plain) == Ids{defined, defined, 'x'});
  CHECK(text_of(bpe, {control, defined, 'x'}, false) == "<tool>x");
  CHECK(text_of(bpe, {control, defined, 'x'}, true) == "<|go|><tool>x");
}

TEST_CASE("BOS is added when the file says so, or when its pre-tokenizer implies it") {
  for (const char* pre : {"gpt-2", "llama-bpe"}) {
    Toy toy(pre);
    const TokenId bos = toy.small.add("<bos>", TokenType::control);
    toy.small.source().bos = bos;
    const bool implied = std::string_view(pre) == "llama-bpe";
    CHECK(toy.build().encode("a") == (implied ? Ids{bos, 'a'} : Ids{'a'}));
    toy.small.source().add_bos = !implied;
    CHECK(toy.build().encode("a") == (implied ? Ids{'a'} : Ids{bos, 'a'}));
  }
}

TEST_CASE("a vocabulary with an unknown pre-tokenizer is refused") {
  Toy toy("nobody-knows");
  CHECK_THROWS_AS(toy.build(), const mica::Error&);
}

TEST_CASE("a long word is joined to the same tokens as a short one") {
  Toy toy;
  std::string text = "x";
  TokenId last = 0;
  for (int power = 0; power < 6; ++power, text += text) last = toy.merge(text, text);
  const Bpe bpe = toy.build();
  CHECK(bpe.encode(std::string(64, 'x'), plain) == Ids{last});
  const Ids ids = bpe.encode(std::string(64 * 1000 + 3, 'x'), plain);
  REQUIRE(ids.size() == 1002);
  CHECK(std::all_of(ids.begin(), ids.begin() + 1000, [&](TokenId id) { return id == last; }));
  CHECK(ids[1001] == 'x');
}

TEST_CASE("long and short words take different ways to the same tokens") {
  // Random merges over three letters; a long text cut where no merge reaches across gives the parts' tokens.
  Toy toy;
  std::vector<std::string> parts = {"a", "b", "c"};
  unsigned state = 7;
  const auto random = [&](std::size_t n) { return (state = state * 1664525U + 1013904223U) / 65536U % n; };
  while (parts.size() < 60) {
    const std::string left = parts[random(parts.size())], right = parts[random(parts.size())];
    if (left.size() + right.size() > 12 || std::find(parts.begin(), parts.end(), left + right) != parts.end())
      continue;
    parts.push_back(left + right);
    toy.merge(left, right);
  }
  const Bpe bpe = toy.build();
  std::string all;
  Ids expected;
  for (int piece = 0; piece < 400; ++piece) {
    std::string word;
    for (std::size_t n = 20 + random(30); n > 0; --n) word.push_back(static_cast<char>('a' + random(3)));
    const Ids ids = bpe.encode(word + "z", plain);  // no merge knows z
    expected.insert(expected.end(), ids.begin(), ids.end());
    all += word + "z";
  }
  REQUIRE(all.size() > 8192);
  CHECK(bpe.encode(all, plain) == expected);
}

#endif

}  // namespace bpe_test
