// SPDX-License-Identifier: Apache-2.0
#include "load.hpp"

#include "budgeted.hpp"
#include "console.hpp"
#include "draft.hpp"
#include "input.hpp"
#include "mica/budget/size.hpp"
#include "pacing.hpp"
#include "progress.hpp"

#include <algorithm>
#include <memory>
#include <utility>

namespace mica::program {
namespace {

/// A draft is a model of its own beside the one that it guesses for, within the same budget.
void leave_for_draft(const Options& options, const gguf::Document& document, OpenOptions& open) {
  const std::uint64_t bytes = draft_bytes(options), budget = budget_of(document, open);
  MICA_CHECK(bytes < budget, budget, options.draft, ": a draft needs ", budget::size_text(bytes), ", budget ",
             budget::size_text(budget), "; use a smaller one, or none");
  if (open.memory_bytes) *open.memory_bytes -= bytes;
  open.limits = options.limits.without(bytes);
}

}  // namespace

Model open_model(const Options& options, std::size_t logits_rows, plan::Sequences sequences) {
  gguf::Document document = open_document(options);
  OpenOptions open = open_options(options);
  open.logits_rows = std::max(open.logits_rows, logits_rows);
  open.log = log_to_stderr(options);
  open.sequences = sequences;
  if (!options.draft.empty()) leave_for_draft(options, document, open);
  const bool answers = options.verb == "run" || options.verb == "chat" || options.verb == "complete";
  if (answers) {
    make_it_fit(options, document, open);
  } else if (open.memory_bytes) {
    refuse_what_does_not_fit(document, open);
  }
  const std::shared_ptr<pace::Pacer> pacer = pacer_of(options);
  open.runs = pacer;
  const Waiting waiting(options, join("loading ", escaped(document.path())));
  Model model(std::move(document), open);
  if (answers) note_long_context(options, model.transformer().n_ctx(), model.config());
  if (pacer != nullptr) note(options, join("mica: pace: ", pacer->text()));
  return model;
}

}  // namespace mica::program
