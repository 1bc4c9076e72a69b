// SPDX-License-Identifier: Apache-2.0
//
// From options to an open model: the file that was named, or the bundled one.
#pragma once

#include "options.hpp"

#include "mica/gguf/reader.hpp"
#include "mica/runtime/open.hpp"

#include <string>

namespace mica::program {

/// The header of the file that was named; of the bundled model when none was. Raises ErrorCode::usage when there is none.
[[nodiscard]] gguf::Document open_document(const Options& options);

/// The model, ready to run.
[[nodiscard]] Model open_model(const Options& options, std::size_t logits_rows = 1);

/// The prompt: words, --prompt or --prompt-file; empty when there is none.
[[nodiscard]] std::optional<std::string> prompt_of(const Options& options);

/// Ids from --ids or --ids-file. Raises ErrorCode::usage for what is no number.
[[nodiscard]] std::vector<text::TokenId> ids_of(const Options& options);

}  // namespace mica::program
