// SPDX-License-Identifier: Apache-2.0
//
// What a verb is to work on: the file that was named, the prompt, the ids.
#pragma once

#include "mica/base/token_id.hpp"
#include "mica/gguf/reader.hpp"
#include "options.hpp"

#include <optional>
#include <string>
#include <vector>

namespace mica::program {

/// The header of the file or URL that was named; of the bundled model when none was. Raises ErrorCode::usage
/// when there is none.
[[nodiscard]] gguf::Document open_document(const Options& options);

/// The prompt of the command line: words or --prompt, behind the text of --prompt-file; empty when there is
/// neither.
[[nodiscard]] std::optional<std::string> prompt_of(const Options& options);

/// The same behind the text of stdin, where that is a pipe or a file and no flag reads it. No prompt: nothing
/// is read.
[[nodiscard]] std::optional<std::string> prompt_with_stdin(const Options& options);

[[nodiscard]] bool ids_given(const Options& options) noexcept;

/// Ids from words, --ids or --ids-file. Raises ErrorCode::usage for what is no number, and for ids given
/// twice.
[[nodiscard]] std::vector<TokenId> ids_of(const Options& options);

}  // namespace mica::program
