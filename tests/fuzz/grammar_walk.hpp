// SPDX-License-Identifier: Apache-2.0
//
// A walk through the texts of a language, token by token, as an answer goes: some token is always allowed,
// and the mask says what advance() does.
#pragma once

#include "fuzz/input.hpp"
#include "mica/constraint/grammar.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::fuzz {

/// All bytes, some longer tokens, a control token, and one that ends a text.
inline std::shared_ptr<const constraint::TokenTrie> walk_tokens() {
  std::vector<constraint::TokenBytes> tokens;
  const auto add = [&](std::string text) {
    tokens.push_back({static_cast<TokenId>(tokens.size()), std::move(text)});
  };
  for (int byte = 0; byte < 256; ++byte) add(std::string(1, static_cast<char>(byte)));
  for (const char* const text :
       {"ab", "abc", "{\"", "\":", "\",\"", "true", "null", "12", "0.5", "e+1", "\xC3\xA9", "\xF0\x9F\x98",
        "\\u00", "  ", "]}", "a a a a a a a a a a a a a a a a a a a a"})
    add(text);
  add(constraint::TokenTrie::special_text(static_cast<TokenId>(tokens.size())));
  const auto end = static_cast<TokenId>(tokens.size());
  add(constraint::TokenTrie::special_text(end));
  return std::make_shared<const constraint::TokenTrie>(std::move(tokens), end + 1, std::vector{end}, end);
}

/// Small, so that a search tries many languages.
inline constexpr constraint::Limits walk_limits{
    .max_bytes = std::size_t{4} << 20, .max_items = 300, .max_new_states = 3000};

/// Each step takes a byte of `choices`.
inline void walk(constraint::Language language, std::string_view choices) {
  static const auto tokens = walk_tokens();
  const std::size_t n_vocab = tokens->n_vocab();
  constraint::Grammar grammar(tokens, std::move(language), {.limits = walk_limits});
  for (const char choice : choices) {
    constraint::TokenMask mask(n_vocab);
    if (!grammar.allowed(mask)) return require(!grammar.why().empty(), "a limit has a text");
    require(mask.count() > 0, "a text that was begun can go on or end");
    std::vector<TokenId> ids;
    mask.for_each([&](TokenId id) { ids.push_back(id); });
    for (TokenId id = 0; id < n_vocab; ++id) {
      constraint::Grammar copy = grammar;
      const bool advances = copy.advance(id);
      if (!copy.why().empty()) return;
      require(advances == mask.contains(id), join("the mask says whether token ", id, " is allowed"));
    }
    TokenId forced = 0;
    if (grammar.forced({&forced, 1}) == 1) require(mask.contains(forced), "a forced token is allowed");
    const TokenId chosen = ids[static_cast<unsigned char>(choice) % ids.size()];
    if (!grammar.why().empty() || !grammar.advance(chosen) || tokens->is_end(chosen)) return;
  }
}

}  // namespace mica::fuzz
