// SPDX-License-Identifier: Apache-2.0
//
// The steps that all tokenizers share: a text is cut at the special tokens written in it. The leftmost token
// wins, of those that begin there the longest.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/text/concept.hpp"
#include "mica/text/token_id.hpp"
#include "mica/text/vocabulary.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace mica::text::detail {

/// White space as the C locale has it.
constexpr bool is_ascii_space(char c) noexcept { return c == ' ' || (c >= '\t' && c <= '\r'); }

/// Raises for a text whose positions do not fit the symbols of a MergeQueue.
inline void check_text_bytes(std::string_view text) {
  MICA_CHECK(text.size() < 0x4000'0000U, limit, "encode: the text has ", text.size(),
             " bytes, at most 1073741823 are taken");
}

/// The tokens of a text: `on_text(view, out)` adds those of each stretch between special tokens that is not
/// empty. White space after a token for which `trims(id)` holds is dropped. BOS and EOS are added as the
/// options and the vocabulary say.
template <class OnText, class Trims>
[[nodiscard]] std::vector<TokenId> encode_around_special(const Vocabulary& vocabulary, std::string_view text,
                                                         const EncodeOptions& options, OnText&& on_text,
                                                         Trims&& trims) {
  std::vector<TokenId> out;
  if (options.add_special && vocabulary.add_bos()) out.push_back(*vocabulary.special().bos);
  std::size_t begin = 0;  // of the stretch that grows
  std::size_t at = 0;
  auto literal = options.literal.begin();
  while (at < text.size()) {
    while (literal != options.literal.end() && *literal < at) ++literal;
    const bool is_literal = literal != options.literal.end() && *literal == at;
    const TokenId id =
        is_literal ? no_token : vocabulary.special_prefix(text.substr(at), options.parse_special);
    if (id == no_token) {
      ++at;
      continue;
    }
    if (at > begin) on_text(text.substr(begin, at - begin), out);
    out.push_back(id);
    at += vocabulary.text(id).size();
    while (trims(id) && at < text.size() && is_ascii_space(text[at])) ++at;
    begin = at;
  }
  if (at > begin) on_text(text.substr(begin), out);
  if (options.add_special && vocabulary.add_eos()) out.push_back(*vocabulary.special().eos);
  return out;
}

/// Adds the token of a byte; where the vocabulary lacks it, the unknown token or nothing.
inline void append_or_unknown(TokenId id, const Vocabulary& vocabulary, std::vector<TokenId>& out) {
  if (id == no_token) id = vocabulary.special().unknown.value_or(no_token);
  if (id != no_token) out.push_back(id);
}

/// Adds the text of a token that is not ordinary text, as far as it is shown; false for the others.
inline bool append_special(const Vocabulary& vocabulary, TokenId id, bool show_special, std::string& out) {
  const TokenType type = vocabulary.type(id);
  const bool hidden = type == TokenType::control || type == TokenType::unknown;
  if ((hidden && show_special) || type == TokenType::user_defined) out.append(vocabulary.text(id));
  return hidden || type == TokenType::user_defined || type == TokenType::unused;
}

}  // namespace mica::text::detail
