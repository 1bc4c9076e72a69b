// SPDX-License-Identifier: Apache-2.0
//
// A token as grammars name it: "<think>" by its text, "[1000]" by its id.
#pragma once

#include "mica/constraint/token_trie.hpp"

#include <charconv>
#include <string>
#include <string_view>
#include <system_error>

namespace mica::constraint {

/// The bytes that stand for the token of a name, for GbnfOptions::token_text; empty: there is no such token.
/// encode(text): its tokens, a control token as one.
template <class Encode>
[[nodiscard]] std::string named_token(const TokenTrie& tokens, std::string_view name, Encode&& encode) {
  if (name.size() > 2 && name.front() == '[' && name.back() == ']') {
    TokenId id = 0;
    const char* const end = name.data() + name.size() - 1;
    const auto [at, error] = std::from_chars(name.data() + 1, end, id);
    if (error == std::errc() && at == end)
      return id < tokens.n_vocab() ? std::string(tokens.bytes_of(id)) : std::string();
  }
  const auto ids = encode(name);
  return ids.size() == 1 ? std::string(tokens.bytes_of(ids[0])) : std::string();
}

}  // namespace mica::constraint
