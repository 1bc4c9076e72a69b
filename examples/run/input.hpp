// SPDX-License-Identifier: Apache-2.0
//
// The input of a verb: its file, the prompt, ids.
#pragma once

#include "mica/base/token_id.hpp"
#include "mica/gguf/reader.hpp"
#include "verb.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mica::program {

class AnswerVerb;

/// The prompt: words or --prompt, behind the text of --prompt-file.
struct PromptOptions {
  std::vector<std::string> words;
  std::optional<std::string> prompt;
  std::string prompt_file;
  bool escape = false;  // \n and the like in the prompt become bytes

  void add_to(Flags& flags);
  /// Empty when there is none.
  [[nodiscard]] std::optional<std::string> full_prompt() const;
};

/// Ids: words, --ids or --ids-file.
struct IdsOptions {
  std::vector<std::string> words;
  std::string ids;
  std::string ids_file;

  void add_to(Flags& flags);
  /// Raises ErrorCode::usage for words that are no numbers, and for ids given twice.
  [[nodiscard]] std::vector<TokenId> parsed() const;
};

/// The header of the file or URL that was named; of the bundled model when none was. Raises ErrorCode::usage
/// when there is none.
[[nodiscard]] gguf::Document open_document(const Verb& verb);

/// A text with \n, \t, \r, \\, \", \' and \xHH as they are typed, as bytes.
[[nodiscard]] std::string unescaped(std::string_view text);

/// Words with blanks between them; empty when there are none.
[[nodiscard]] std::optional<std::string> joined(const std::vector<std::string>& words);

/// The prompt behind the text of stdin, where that is a pipe or a file and no flag reads it. No prompt:
/// nothing is read.
[[nodiscard]] std::optional<std::string> prompt_with_stdin(const AnswerVerb& verb);

}  // namespace mica::program
