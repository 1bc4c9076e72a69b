// SPDX-License-Identifier: Apache-2.0
//
// Cuts a text at the special tokens written in it. The leftmost token wins, of those that begin there the
// longest.
#pragma once

#include "mica/text/concept.hpp"
#include "mica/text/token_id.hpp"
#include "mica/text/vocabulary.hpp"

#include <cstddef>
#include <string_view>

namespace mica::text::detail {

/// White space as the C locale has it.
constexpr bool is_ascii_space(char c) noexcept { return c == ' ' || (c >= '\t' && c <= '\r'); }

/// Calls `on_text(view)` for each stretch between special tokens that is not empty and `on_token(id)` for
/// each token, in order. White space after a token for which `trims(id)` holds is dropped.
template <class OnText, class OnToken, class Trims>
void split_special(const Vocabulary& vocabulary, std::string_view text, const EncodeOptions& options,
                   OnText&& on_text, OnToken&& on_token, Trims&& trims) {
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
    if (at > begin) on_text(text.substr(begin, at - begin));
    on_token(id);
    at += vocabulary.text(id).size();
    while (trims(id) && at < text.size() && is_ascii_space(text[at])) ++at;
    begin = at;
  }
  if (at > begin) on_text(text.substr(begin));
}

}  // namespace mica::text::detail
