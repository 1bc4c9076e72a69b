// SPDX-License-Identifier: Apache-2.0
//
// What a tokenizer promises: text to token ids and back. Spm, Bpe, WordPiece and Unigram are the
// models; AnyTokenizer is one of them, chosen by the file.
#pragma once

#include "mica/text/token_id.hpp"
#include "mica/text/vocabulary.hpp"

#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mica::text {

/// How a text becomes tokens.
struct EncodeOptions {
  bool add_special = true;     ///< add the BOS and EOS that the vocabulary asks for
  bool parse_special = false;  ///< a control token written out in the text ("<|eot_id|>") becomes that token
  /// Ascending byte offsets in the text at which no special token begins. MarkedMessages makes them.
  std::span<const std::size_t> literal = {};
};

/// Text to ids and back. Immutable: any number of threads may use one object.
/// `encode` takes any bytes, also invalid UTF-8, in time and memory linear in the text up to a logarithm.
/// `append_piece` takes any id below `vocabulary().size()` and adds its bytes, which may end within a
/// character; control and unknown tokens add nothing unless shown.
// clang-format off
template <class T>
concept Tokenizer = requires(const T& tokenizer, std::string_view text, EncodeOptions options, TokenId id,
                             std::string& out) {
  { tokenizer.encode(text, options) } -> std::same_as<std::vector<TokenId>>;  // raises `limit` for 1 GiB
  { tokenizer.append_piece(id, true, out) } -> std::same_as<void>;            // true: show special ones
  { tokenizer.vocabulary() } noexcept -> std::same_as<const Vocabulary&>;     // lives in the tokenizer
};
// clang-format on

}  // namespace mica::text
