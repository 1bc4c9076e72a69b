// SPDX-License-Identifier: Apache-2.0
//
// The vocabulary of a tokenizer as grammars see it, and tokens that grammars name.

#include "mica/constraint/token_trie.hpp"

#include "mica/constraint/named_token.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::test::token_trie_test {

using namespace constraint;

namespace {

using Tokens = std::vector<TokenId>;

/// A tokenizer that is told what it makes of each text.
class Told {
 public:
  explicit Told(std::map<std::string, Tokens, std::less<>> tokens)
      : tokens_(std::move(tokens)), vocabulary_(source()) {}

  [[nodiscard]] Tokens encode(std::string_view text, text::EncodeOptions /*options*/) const {
    const auto found = tokens_.find(text);
    return found == tokens_.end() ? Tokens() : found->second;
  }
  void append_piece(TokenId id, bool show_special, std::string& out) const {
    if (show_special || vocabulary_.type(id) != text::TokenType::control) out += vocabulary_.text(id);
  }
  [[nodiscard]] const text::Vocabulary& vocabulary() const noexcept { return vocabulary_; }

 private:
  static text::Vocabulary source() {
    static constexpr std::string_view texts[] = {"a", "b", "ab", "c", "<end>", "ac"};
    static constexpr std::int32_t types[] = {1, 1, 1, 1, 3, 5};  // the last two: control, unused
    text::VocabularySource source;
    source.model = "gpt2";
    source.tokens = texts;
    source.types = types;
    source.eos = 4;
    return text::Vocabulary(source);
  }

  std::map<std::string, Tokens, std::less<>> tokens_;
  text::Vocabulary vocabulary_;
};

}  // namespace

TEST_CASE("the tokens of a text are those of the tokenizer if they spell it, else the longest ones") {
  const Told tokenizer(
      {{"aab", {0, 0, 1}}, {"ba", {1}}, {"bb", {1, 0}}, {"cc", {3, 77}}, {"ca", {3, 5}}, {"abc", {2, 3, 3}}});
  const TokenTrie trie(tokenizer);
  CHECK(trie.n_vocab() == 6);
  CHECK(trie.end() == 4);
  CHECK(trie.bytes_of(TokenId{4}) ==
        "\xFF"
        "4;");
  CHECK(trie.bytes_of(TokenId{5}).empty());  // unused
  CHECK(trie.tokens_of("aab") == Tokens{0, 0, 1});
  CHECK(trie.tokens_of("ba") == Tokens{1, 0});
  CHECK(trie.tokens_of("bb") == Tokens{1, 1});
  CHECK(trie.tokens_of("cc") == Tokens{3, 3});
  CHECK(trie.tokens_of("ca") == Tokens{3, 0});
  CHECK(trie.tokens_of("abc") == Tokens{2, 3});
  CHECK(trie.tokens_of("axb") == Tokens{0});  // no token has x
  CHECK(trie.tokens_of("").empty());
}

TEST_CASE("a token is named by its number in brackets, or by a text that is one token") {
  const TokenTrie trie({{0, "a"}, {1, "<x>"}, {2, "]"}}, 3, {}, {});
  const auto named = [&](std::string_view name) {
    return named_token(trie, name, [](std::string_view text) {
      return text == "<x>" || text == "[1x]" ? Tokens{1} : text == "[]" ? Tokens{2} : Tokens{0, 2};
    });
  };
  CHECK(named("[0]") == "a");
  CHECK(named("[1]") == "<x>");
  CHECK(named("[3]").empty());
  CHECK(named("<x>") == "<x>");
  CHECK(named("[1x]") == "<x>");
  CHECK(named("[]") == "]");
  for (const std::string_view two : {"ab", "[a]", "[-1]", "[99999999999]", "[12", "1]]"})
    CHECK(named(two).empty());
}

}  // namespace mica::test::token_trie_test
