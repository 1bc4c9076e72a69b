// SPDX-License-Identifier: Apache-2.0
//
// From options to a model that runs, or to an error that says why it does not fit.
#pragma once

#include "answer_options.hpp"
#include "mica/runtime/open.hpp"

namespace mica::program {

/// The model, ready to run. With --memory it is planned first, and refused before anything is loaded if it
/// does not fit. logits_rows: the minimum. sequences: the number that will be open at once.
[[nodiscard]] Model open_model(const RunningVerb& verb, std::size_t logits_rows,
                               plan::Sequences sequences = {});

/// The same of a document and options that are chosen already, but for what messages need.
[[nodiscard]] Model open_model(const RunningVerb& verb, gguf::Document document, OpenOptions open);

/// The same for an answer: choices that no flag sets change until the model and its draft fit.
[[nodiscard]] Model open_model(const AnswerVerb& verb);

}  // namespace mica::program
