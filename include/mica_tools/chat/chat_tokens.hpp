// SPDX-License-Identifier: Apache-2.0
//
// A rendered conversation as tokens.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/text/concept.hpp"
#include "mica_tools/chat/marked_messages.hpp"

#include <vector>

namespace mica::text {

/// Control tokens of the chat format become tokens, those in messages stay text. BOS comes first where the
/// vocabulary wants it and the template has not written it. Raises ErrorCode::failed for no tokens.
template <Tokenizer T>
[[nodiscard]] std::vector<TokenId> chat_tokens(const T& tokenizer, const ChatText& chat) {
  const Vocabulary& vocabulary = tokenizer.vocabulary();
  auto ids =
      tokenizer.encode(chat.text, {.add_special = false, .parse_special = true, .literal = chat.literal});
  const bool lacks_bos = vocabulary.add_bos() && (ids.empty() || ids.front() != *vocabulary.special().bos);
  if (lacks_bos) ids.insert(ids.begin(), *vocabulary.special().bos);  // most templates write it
  MICA_CHECK(!ids.empty(), failed, "the chat format renders nothing");
  return ids;
}

}  // namespace mica::text
