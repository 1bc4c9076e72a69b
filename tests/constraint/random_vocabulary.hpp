// SPDX-License-Identifier: Apache-2.0
//
// Small vocabularies as constraints see them: short tokens, among them halves of characters, equal ones and
// one without bytes; control tokens, and tokens that end a text.
#pragma once

#include "mica/constraint/token_trie.hpp"
#include "reference.hpp"

#include <cstddef>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::test {

/// Tokens by id, the last two end a text; those before them are control tokens.
struct Vocabulary {
  std::vector<std::string> texts;
  std::size_t controls = 0;

  [[nodiscard]] std::size_t size() const { return texts.size() + controls + 2; }
  [[nodiscard]] TokenId control(std::size_t i) const { return static_cast<TokenId>(texts.size() + i); }
  [[nodiscard]] TokenId end() const { return static_cast<TokenId>(size() - 1); }
  [[nodiscard]] std::string bytes(TokenId id) const {
    return id < texts.size() ? texts[id] : constraint::TokenTrie::special_text(id);
  }
  [[nodiscard]] std::shared_ptr<const constraint::TokenTrie> trie() const {
    std::vector<constraint::TokenBytes> tokens;
    for (TokenId id = 0; id < size(); ++id) tokens.push_back({id, bytes(id)});
    return std::make_shared<const constraint::TokenTrie>(std::move(tokens), size(),
                                                         std::vector<TokenId>{end() - 1, end()}, end());
  }
};

inline Vocabulary random_vocabulary(CounterRng& rng) {
  constexpr std::string_view letters[] = {"a", "b", "c",    "x",    "1",    "0",    " ",      "\"",
                                          "{", "}", "[",    "]",    ",",    ":",    "\\",     "\n",
                                          "a", "b", "\xC3", "\xA9", "\xE2", "\x82", "\u00E9", "\U0001F600"};
  Vocabulary out;
  for (std::size_t n = 50 + draw(rng, 150); n > 0; --n) {
    std::string text;
    const std::size_t length = draw(rng, 30) == 0 ? 28 + draw(rng, 20) : 1 + draw(rng, 4);
    const std::size_t kinds = draw(rng, 3) == 0 ? 4 : std::size(letters);
    for (std::size_t i = 0; i < length; ++i) text += letters[draw(rng, kinds)];
    out.texts.push_back(text);
    if (draw(rng, 20) == 0) out.texts.push_back(text);  // another token with the same bytes
  }
  for (const char byte : std::string_view("a\"\xC3\xF0\x9F\xFF")) out.texts.emplace_back(1, byte);
  out.texts.emplace_back();  // a token without bytes
  out.controls = 3;
  return out;
}

}  // namespace mica::test
