// SPDX-License-Identifier: Apache-2.0
//
// Two texts as one sequence, as rerankers read a query and a document:
//
//   BERT           CLS query SEP document SEP
//   XLM-RoBERTa    <s> query </s></s> document </s>
#pragma once

#include "mica/text/concept.hpp"
#include "mica/text/token_id.hpp"
#include "mica/text/vocabulary.hpp"

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace mica::text {

/// The tokens of two texts and those around them.
struct TokenPair {
  std::vector<TokenId> ids;
  std::size_t second = 0;  // the place of the first token that belongs to the second text: segment B of BERT
};

/// Joins the tokens of two texts, without BOS and EOS of their own: BOS and EOS are added as the vocabulary
/// says, and a separator between the texts where it has one. A caller may shorten the texts before.
[[nodiscard]] inline TokenPair join_pair(const Vocabulary& vocabulary, std::span<const TokenId> first,
                                         std::span<const TokenId> second) {
  const SpecialIds& special = vocabulary.special();
  TokenPair out;
  out.ids.reserve(first.size() + second.size() + 4);
  if (vocabulary.add_bos()) out.ids.push_back(*special.bos);
  out.ids.insert(out.ids.end(), first.begin(), first.end());
  if (vocabulary.add_eos()) out.ids.push_back(*special.eos);
  const auto separator = special.separator ? special.separator : special.eos;
  if (vocabulary.add_separator() && separator) out.ids.push_back(*separator);
  out.second = out.ids.size();
  out.ids.insert(out.ids.end(), second.begin(), second.end());
  if (vocabulary.add_eos()) out.ids.push_back(*special.eos);
  return out;
}

/// The tokens of a query and a document. Control tokens written out in the texts stay text. Raises what
/// `encode` raises.
template <Tokenizer T>
[[nodiscard]] TokenPair encode_pair(const T& tokenizer, std::string_view query, std::string_view document) {
  const EncodeOptions plain = {.add_special = false};
  return join_pair(tokenizer.vocabulary(), tokenizer.encode(query, plain), tokenizer.encode(document, plain));
}

}  // namespace mica::text
