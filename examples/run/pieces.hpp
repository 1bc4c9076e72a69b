// SPDX-License-Identifier: Apache-2.0
//
// Tokens as tokenize and detokenize show them. A file with a vocabulary alone is enough.
#pragma once

#include "console.hpp"
#include "input.hpp"
#include "json_text.hpp"
#include "mica/text/tokenizer.hpp"
#include "mica/text/vocabulary_gguf.hpp"
#include "mica_tools/json/base64.hpp"

#include <string>

namespace mica::program {

[[nodiscard]] inline text::AnyTokenizer open_tokenizer(const Verb& verb) {
  return text::make_tokenizer(text::vocabulary_from(open_document(verb).metadata(), log_to_stderr(verb)));
}

/// A piece as JSON: a string, or {"b64": ...} when its bytes are no text on their own.
[[nodiscard]] inline std::string piece_json(const std::string& piece) {
  return is_json_text(piece) ? json_string(piece) : join("{\"b64\":\"", base64_encoded(piece), "\"}");
}

}  // namespace mica::program
