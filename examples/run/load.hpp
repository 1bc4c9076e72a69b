// SPDX-License-Identifier: Apache-2.0
//
// From options to a model that runs, or to the sentence that says why it does not fit.
#pragma once

#include "answer_options.hpp"
#include "mica/runtime/open.hpp"

namespace mica::program {

/// The model, ready to run. With --memory it is planned first: what does not fit is refused before anything
/// is loaded. logits_rows: the min. sequences: those that will be open at once.
[[nodiscard]] Model open_model(const RunningVerb& verb, std::size_t logits_rows,
                               plan::Sequences sequences = {});

/// The same for an answer: what no flag names changes until the model fits, and a draft has its share.
[[nodiscard]] Model open_model(const AnswerVerb& verb);

}  // namespace mica::program
