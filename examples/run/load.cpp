// SPDX-License-Identifier: Apache-2.0
#include "load.hpp"

#include "budgeted.hpp"
#include "console.hpp"
#include "draft.hpp"
#include "input.hpp"
#include "loading_line.hpp"
#include "mica/budget/size.hpp"
#include "pacing.hpp"

#include <csignal>
#include <memory>
#include <utility>
#include <unistd.h>

namespace mica::program {
namespace {

/// A draft is a second model, within the same budget.
void leave_for_draft(const AnswerVerb& verb, const gguf::Document& document, OpenOptions& open) {
  const std::uint64_t bytes = draft_bytes(verb), budget = budget_of(document, open);
  MICA_CHECK(bytes < budget, budget, verb.draft, ": a draft needs ", budget::size_text(bytes), ", budget ",
             budget::size_text(budget), "; use a smaller one, or none");
  if (open.memory_bytes) *open.memory_bytes -= bytes;
  open.limits = verb.limits.without(bytes);
}

Model load(const Verb& verb, gguf::Document document, OpenOptions open) {
  LoadingLine line(verb, document);
  open.progress = line.report();
  return {std::move(document), open};
}

}  // namespace

Model open_model(const RunningVerb& verb, std::size_t logits_rows, plan::Sequences sequences) {
  gguf::Document document = open_document(verb);
  OpenOptions open = open_options(verb);
  open.logits_rows = logits_rows;
  open.log = log_to_stderr(verb);
  open.sequences = sequences;
  if (open.memory_bytes) refuse_what_does_not_fit(document, open);
  Model model = load(verb, std::move(document), open);
  note_long_context(verb, model.transformer().n_ctx(), model.config());
  return model;
}

Model open_model(const AnswerVerb& verb) {
  gguf::Document document = open_document(verb);
  OpenOptions open = open_options(verb);
  open.log = log_to_stderr(verb);
  if (!verb.draft.empty()) leave_for_draft(verb, document, open);
  make_it_fit(verb, document, open);
  const std::shared_ptr<pace::Pacer> pacer = pacer_of(verb);
  open.runs = pacer;
  // A program that waits for a line, or reads a prompt, ends as by SIGTERM.
  if (verb.governor)
    open.watch = std::make_shared<MemoryWatch>(
        MemoryWatchOptions{.governor = verb.thresholds, .on_halt = [] { ::kill(::getpid(), SIGTERM); }});
  Model model = load(verb, std::move(document), open);
  note_long_context(verb, model.transformer().n_ctx(), model.config());
  if (pacer != nullptr) note(verb, join("mica: pace: ", pacer->text()));
  return model;
}

}  // namespace mica::program
