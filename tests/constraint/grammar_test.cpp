// SPDX-License-Identifier: Apache-2.0

#include "mica/constraint/grammar.hpp"

#include "mica/constraint/code_points.hpp"
#include "mica/constraint/gbnf.hpp"
#include "mica/constraint/regex.hpp"
#include "random_vocabulary.hpp"
#include "reference.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::test::grammar_test {

using namespace constraint;

namespace {

using MakeLanguage = std::function<Language(const Vocabulary&)>;

Language of_regex(std::string_view pattern) {
  auto expressions = std::make_unique<Expressions>();
  const ExprId start = parse_regex(pattern, *expressions);
  return regular(std::move(expressions), start);
}

Language of_gbnf(std::string_view grammar, const Vocabulary& vocabulary) {
  return parse_gbnf(grammar, {.token_text = [&](std::string_view token) {
                      return vocabulary.bytes(vocabulary.control(static_cast<std::size_t>(token[1] - '0')));
                    }});
}

constexpr std::string_view json = R"gbnf(
root   ::= value
value  ::= "{" (string ":" value ("," string ":" value)*)? "}" |
           "[" (value ("," value)*)? "]" | string | [0-9]+
string ::= "\"" ([^"\\\x00-\x1F\x7F] | "\\" ["\\n])* "\""
)gbnf";

const std::vector<std::pair<std::string, MakeLanguage>> languages = {
    {"free text", [](const Vocabulary&) { return of_regex("[^]*"); }},
    {"counted string",
     [](const Vocabulary&) { return of_regex("\"[^\"\\\\\\x00-\\x1f\\x7f]{2,40}\"[ab]?"); }},
    {"words", [](const Vocabulary&) { return of_regex("([a-z]{1,5}|[A-Za-z0-9]{8,})( [a-c]+)*"); }},
    {"listed names",
     [](const Vocabulary&) { return of_regex("\"(?!(abc|ab|a\u00E9)\")[^\"\\\\\\x00-\\x1f]*\""); }},
    {"search", [](const Vocabulary&) { return of_regex(".*(ab|ba{2,}c).*"); }},
    {"few letters", [](const Vocabulary&) { return of_regex("(a|bb|\u00E9)*1"); }},
    {"fixed", [](const Vocabulary&) { return of_regex("\\{\"abc\":\\[(1|0)\\]\\}"); }},
    {"json", [](const Vocabulary& v) { return of_gbnf(json, v); }},
    {"control tokens",
     [](const Vocabulary& v) {
       return of_gbnf("root ::= <[0]> !<[1]>* <[1]> [abx1]{0,3} (<[0]> | <[2]>)", v);
     }},
};

/// Whether a token keeps a text within the language, by its bytes alone.
bool may_follow(Recognizer& recognizer, const Vocabulary& vocabulary, StateId state, TokenId id) {
  if (id >= vocabulary.end() - 1) return recognizer.accepts(state);
  const std::string bytes = vocabulary.bytes(id);
  if (bytes.empty() || (id < vocabulary.texts.size() && bytes.find('\xFF') != std::string::npos))
    return false;
  for (const char c : bytes) state = recognizer.step(state, static_cast<std::uint8_t>(c));
  return state != StateId::dead;
}

StateId after_tokens(Recognizer& recognizer, const Vocabulary& vocabulary,
                     const std::vector<TokenId>& tokens) {
  std::string text;
  for (const TokenId id : tokens) text += vocabulary.bytes(id);
  return after(recognizer, text);
}

}  // namespace

TEST_CASE("the mask of every state has the tokens that may follow, also after a rewind") {
  CounterRng rng(31);
  for (const auto& each : languages) {
    CAPTURE(each.first);
    const MakeLanguage& make = each.second;
    for (int round = 0; round < 12; ++round) {
      const Vocabulary vocabulary = random_vocabulary(rng);
      const auto trie = vocabulary.trie();
      Language reference = make(vocabulary);
      Recognizer recognizer(reference);
      Grammar grammar(trie, make(vocabulary));
      TokenMask mask;
      std::vector<TokenId> tokens;
      for (int steps = 0; steps < 40; ++steps) {
        const StateId state = after_tokens(recognizer, vocabulary, tokens);
        REQUIRE(grammar.allowed(mask));
        REQUIRE(mask.size() == vocabulary.size());
        std::vector<TokenId> allowed;
        for (TokenId id = 0; id < vocabulary.size(); ++id) {
          CAPTURE(id);
          REQUIRE(mask.contains(id) == may_follow(recognizer, vocabulary, state, id));
          if (mask.contains(id) && id < vocabulary.end() - 1) allowed.push_back(id);
          if (!mask.contains(id)) REQUIRE_FALSE(grammar.advance(id));
        }
        REQUIRE(grammar.accepts() == recognizer.accepts(state));
        if (allowed.empty() || draw(rng, 8) == 0) {
          const std::size_t n = draw(rng, tokens.size() + 1);
          grammar.rewind(n);
          tokens.resize(tokens.size() - n);
          continue;
        }
        tokens.push_back(allowed[draw(rng, allowed.size())]);
        REQUIRE(grammar.advance(tokens.back()));
      }
    }
  }
}

TEST_CASE("forced tokens are the text that must follow, as far as no token reaches beyond it") {
  CounterRng rng(32);
  std::size_t forced_tokens = 0;
  for (int round = 0; round < 200; ++round) {
    const Vocabulary vocabulary = random_vocabulary(rng);
    const auto& each = languages[draw(rng, languages.size())];
    CAPTURE(each.first);
    const MakeLanguage& make = each.second;
    Language reference = make(vocabulary);
    Recognizer recognizer(reference);
    Grammar grammar(vocabulary.trie(), make(vocabulary));
    std::string text;
    for (int steps = 0; steps < 10; ++steps) {
      StateId state = after(recognizer, text);
      std::string certain;  // what must follow
      while (!recognizer.accepts(state) && recognizer.only_byte(state).found) {
        certain.push_back(static_cast<char>(recognizer.only_byte(state).byte));
        state = recognizer.step(state, recognizer.only_byte(state).byte);
      }
      const bool ends = recognizer.accepts(state) && !recognizer.can_continue(state);
      std::array<TokenId, 64> tokens{};
      const std::size_t n = grammar.forced(tokens);
      std::string_view left = certain;
      for (std::size_t i = 0; i < n; ++i) {
        if (tokens[i] == vocabulary.end()) {
          REQUIRE(ends);
          REQUIRE(left.empty());
          continue;
        }
        for (TokenId id = 0; id < vocabulary.size() && !ends; ++id) {  // no other token could be meant
          const std::string bytes = vocabulary.bytes(id);
          if (bytes.size() <= left.size() || !bytes.starts_with(left)) continue;
          CHECK(recognizer.step(state, static_cast<std::uint8_t>(bytes[left.size()])) == StateId::dead);
        }
        const std::string bytes = vocabulary.bytes(tokens[i]);
        REQUIRE(left.starts_with(bytes));
        REQUIRE(grammar.advance(tokens[i]));
        left.remove_prefix(bytes.size());
        text += bytes;
        ++forced_tokens;
      }
      if (ends && left.empty()) REQUIRE((n > 0 && tokens[n - 1] == vocabulary.end()));
      TokenMask mask;
      REQUIRE(grammar.allowed(mask));
      std::vector<TokenId> allowed;
      mask.for_each([&](TokenId id) {
        if (id < vocabulary.end() - 1) allowed.push_back(id);
      });
      if (allowed.empty()) break;
      const TokenId next = allowed[draw(rng, allowed.size())];
      REQUIRE(grammar.advance(next));
      text += vocabulary.bytes(next);
    }
  }
  CHECK(forced_tokens > 50);
}

TEST_CASE("a token that has the bytes of another one does not hide longer ones") {
  const Vocabulary vocabulary{{"ab", "ab", "abc", "c", "d"}};
  Grammar grammar(vocabulary.trie(), of_regex("ab(c|d)"));
  std::array<TokenId, 4> tokens{};
  CHECK(grammar.forced(tokens) == 0);  // "abc" is possible too
  Grammar other(vocabulary.trie(), of_regex("abcd"));
  CHECK(other.forced(tokens) == 3);  // and the end
  CHECK(tokens[0] == 2);
}

TEST_CASE("places that count characters have the right tokens at every count") {
  Vocabulary vocabulary;
  for (std::size_t n = 1; n <= 45; ++n) {
    vocabulary.texts.push_back(std::string(n, 'a'));
    vocabulary.texts.push_back(std::string(n, 'b') + "\"");
    vocabulary.texts.push_back(std::string(n, 'z') + "\xC3");
    std::string accents;
    for (std::size_t i = 0; i < n; ++i) accents += "\u00E9";
    vocabulary.texts.push_back(accents);
  }
  vocabulary.texts.insert(vocabulary.texts.end(), {"\"", "\\", "a\\", "\xA9",
                                                   "\xA9"
                                                   "a\"",
                                                   "\u2028", "a\u2029", "\x7F"});
  for (const std::string_view counts : {"{0,40}", "{31,33}", "{32}", "{40,}", "{1,5}"}) {
    const std::string pattern = "[^\"\\\\\\x00-\\x1f]" + std::string(counts) + "\"";
    Language reference = of_regex(pattern);
    Recognizer recognizer(reference);
    Grammar grammar(vocabulary.trie(), of_regex(pattern));
    std::string text;
    for (int count = 0; count <= 41; ++count) {
      TokenMask mask;
      REQUIRE(grammar.allowed(mask));
      for (TokenId id = 0; id < vocabulary.size(); ++id)
        REQUIRE(mask.contains(id) == may_follow(recognizer, vocabulary, after(recognizer, text), id));
      if (!grammar.advance(TokenId{0})) break;  // "a"
      text += "a";
    }
  }
}

TEST_CASE("control tokens are not spelled by others") {
  Vocabulary vocabulary{{"\xFF", "3", ";",
                         "\xFF"
                         "3;",
                         "a"},
                        1};
  Grammar grammar(vocabulary.trie(), of_gbnf("root ::= \"a\" <[0]>", vocabulary));
  TokenMask mask;
  REQUIRE(grammar.advance(TokenId{4}));
  REQUIRE(grammar.allowed(mask));
  CHECK(mask.count() == 1);
  CHECK(mask.contains(vocabulary.control(0)));
  CHECK_FALSE(grammar.advance(TokenId{0}));
  CHECK_FALSE(grammar.advance(TokenId{3}));
  std::array<TokenId, 4> tokens{};
  REQUIRE(grammar.forced(tokens) == 2);
  CHECK(tokens[0] == vocabulary.control(0));
  CHECK(tokens[1] == vocabulary.end());
}

TEST_CASE("tokens without bytes, of more bytes than a trie has, and of no vocabulary are never allowed") {
  Vocabulary vocabulary{{"", std::string(300, 'a'), "a"}};
  Grammar grammar(vocabulary.trie(), of_regex("a*"));
  TokenMask mask;
  REQUIRE(grammar.allowed(mask));
  CHECK(mask.count() == 3);  // "a" and the two ends
  CHECK_FALSE(mask.contains(1000));
  CHECK_FALSE(grammar.advance(TokenId{0}));
  CHECK_FALSE(grammar.advance(TokenId{1}));
  CHECK_FALSE(grammar.advance(TokenId{1000}));
  CHECK(grammar.advance(TokenId{2}));
}

TEST_CASE("after a token that ends the text nothing is allowed, until a rewind") {
  const Vocabulary vocabulary{{"a", "b"}};
  Grammar grammar(vocabulary.trie(), of_regex("a*"));
  CHECK_FALSE(grammar.advance(TokenId{1}));
  REQUIRE(grammar.advance(TokenId{0}));
  REQUIRE(grammar.advance(vocabulary.end()));
  TokenMask mask;
  std::array<TokenId, 4> tokens{};
  REQUIRE(grammar.allowed(mask));
  CHECK(mask.count() == 0);
  CHECK(grammar.forced(tokens) == 0);
  CHECK_FALSE(grammar.advance(vocabulary.end()));
  CHECK_FALSE(grammar.advance(TokenId{0}));
  grammar.rewind(1);
  CHECK(grammar.accepts());
  REQUIRE(grammar.allowed(mask));
  CHECK(mask.count() == 3);
  grammar.rewind(1);
  CHECK(grammar.advance("aaa"));  // bytes of no token count as one
  CHECK_FALSE(grammar.advance("b"));
  grammar.rewind(1);
  CHECK(grammar.accepts());
}

TEST_CASE("copies continue on their own and share what was found") {
  const Vocabulary vocabulary{{"a", "b", "\""}};
  Grammar grammar(vocabulary.trie(), of_regex("(a|b){3}"));
  REQUIRE(grammar.advance(TokenId{0}));
  Grammar copy = grammar;
  REQUIRE(copy.advance(TokenId{1}));
  REQUIRE(copy.advance(TokenId{1}));
  CHECK(copy.accepts());
  CHECK_FALSE(grammar.accepts());
  TokenMask mask;
  REQUIRE(copy.allowed(mask));
  CHECK(mask.count() == 2);  // the ends
  REQUIRE(grammar.allowed(mask));
  CHECK(mask.contains(0));
  const std::size_t bytes = grammar.bytes();
  Grammar third = grammar;
  CHECK(third.bytes() == bytes);
  grammar = copy;
  CHECK(grammar.accepts());
}

TEST_CASE("nothing is forced if this was not requested, or where no token fits") {
  const Vocabulary vocabulary{{"ab", "c"}};
  std::array<TokenId, 4> tokens{};
  Grammar forcing(vocabulary.trie(), of_regex("abc"));
  CHECK(forcing.forced(tokens) == 3);
  CHECK(forcing.forced(std::span(tokens).first(1)) == 1);
  CHECK(forcing.forced({}) == 0);
  Grammar sampled(vocabulary.trie(), of_regex("abc"), {.force = false});
  CHECK(sampled.forced(tokens) == 0);
  Grammar other(vocabulary.trie(), of_regex("xbc"));  // no token has x
  CHECK(other.forced(tokens) == 0);
}

TEST_CASE("a limit makes masks unknown, with a sentence, and keeps them so") {
  const Vocabulary vocabulary{{"a", "b", "aaaaaaaaaaaaaaaaaaaaaaaa", "[", "]"}};
  Grammar states(vocabulary.trie(), of_regex("(a|b)*a(a|b){200}"), {.limits = {.max_bytes = 20'000}});
  TokenMask mask;
  std::size_t steps = 0;
  for (CounterRng rng(33); states.allowed(mask) && steps < 10'000; ++steps) {
    if (!states.advance(static_cast<TokenId>(draw(rng, 2)))) break;
  }
  CHECK(steps < 10'000);
  CHECK_FALSE(states.allowed(mask));
  CHECK(states.why().find("allowed are 20000") != std::string::npos);
  CHECK_FALSE(states.advance(TokenId{0}));
  CHECK_FALSE(states.advance("a"));
  std::array<TokenId, 4> tokens{};
  CHECK(states.forced(tokens) == 0);
  Grammar work(vocabulary.trie(), of_regex("a{1000}"), {.limits = {.max_new_states = 3}});
  CHECK_FALSE(work.allowed(mask));
  CHECK(work.why().find("a mask needs more than 3 states") != std::string::npos);
  CHECK(Grammar(vocabulary.trie(), of_regex("a")).why().empty());
}

TEST_CASE("the bytes of the limit are booked while a grammar or its copy lives") {
  const Vocabulary vocabulary{{"a"}};
  budget::Ledger ledger(100'000);
  {
    Grammar grammar(vocabulary.trie(), of_regex("a"), {.limits = {.max_bytes = 60'000}, .ledger = &ledger});
    const Grammar copy = grammar;
    CHECK(ledger.left() == 40'000);
    CHECK_THROWS_AS(
        Grammar(vocabulary.trie(), of_regex("a"), {.limits = {.max_bytes = 60'000}, .ledger = &ledger}),
        Error);
  }
  CHECK(ledger.left() == 100'000);
}

}  // namespace mica::test::grammar_test
