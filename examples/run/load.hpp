// SPDX-License-Identifier: Apache-2.0
//
// From options to a model that runs, or to the sentence that says why it does not fit.
#pragma once

#include "mica/runtime/open.hpp"
#include "options.hpp"

namespace mica::program {

/// The model, ready to run. With --memory it is planned first: what does not fit is refused before anything
/// is loaded. logits_rows: the min; more if the options request drafts.
/// sequences: those that will be open at once.
[[nodiscard]] Model open_model(const Options& options, std::size_t logits_rows = 1,
                               plan::Sequences sequences = {});

}  // namespace mica::program
