// SPDX-License-Identifier: Apache-2.0
#include "load.hpp"

#include "budgeted.hpp"
#include "console.hpp"
#include "draft.hpp"
#include "input.hpp"
#include "loading_line.hpp"
#include "mica/arch/any_of.hpp"
#include "mica/arch/lists.hpp"
#include "mica/budget/size.hpp"
#include "mica/plan/plan.hpp"
#include "pacing.hpp"

#include <csignal>
#include <memory>
#include <utility>
#include <unistd.h>

namespace mica::program {
namespace {

/// A draft is a second model, within the same budget. Returns its bytes.
std::uint64_t leave_for_draft(const AnswerVerb& verb, const gguf::Document& document, OpenOptions& open) {
  const std::size_t trained = arch::AnyOf<arch::All>::config(document).n_ctx_train;
  const std::size_t n_ctx = draft_context(verb, trained);
  // The plan of the model has the bytes of the process, too.
  const std::uint64_t bytes = draft_bytes(verb, n_ctx) - plan::any_process_bytes,
                      budget = budget_of(document, open);
  MICA_CHECK(bytes < budget, budget, verb.draft, ": a draft needs ", budget::size_text(bytes), ", budget ",
             budget::size_text(budget), "; use a smaller one, or none");
  if (verb.draft_answers && open.n_ctx == 0) open.n_ctx = n_ctx;  // both have one conversation
  if (open.memory_bytes) *open.memory_bytes -= bytes;
  open.limits = open.limits->without(bytes);
  return bytes;
}

void make_it_fit_beside_draft(const AnswerVerb& verb, const gguf::Document& document, OpenOptions& open) {
  const std::uint64_t bytes = leave_for_draft(verb, document, open);
  try {
    make_it_fit(verb, document, open);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::budget) throw;
    raise(error.code(), error.message(), "; the draft takes ", budget::size_text(bytes), " more");
  }
}

Model load(const RunningVerb& verb, gguf::Document document, OpenOptions open) {
  if (verb.link) refuse_different_ranks(*verb.link, document, open, verb.rank_shares, verb.rank_split);
  LoadingLine line(verb, document);
  open.progress = line.report();
  try {
    Model model(std::move(document), open);
    if (verb.follows()) follow(model.transformer(), *verb.link);
    return model;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::failed && interrupted()) throw Stop{130, {}};
    throw;
  }
}

}  // namespace

Model open_model(const RunningVerb& verb, std::size_t logits_rows, plan::Sequences sequences) {
  OpenOptions open = open_options(verb);
  open.logits_rows = logits_rows;
  open.sequences = sequences;
  return open_model(verb, open_document(verb), std::move(open));
}

Model open_model(const RunningVerb& verb, gguf::Document document, OpenOptions open) {
  open.log = log_to_stderr(verb);
  if (open.memory_bytes) refuse_what_does_not_fit(document, open);
  Model model = load(verb, std::move(document), open);
  note_long_context(verb, model.transformer().n_ctx(), model.config());
  return model;
}

Model open_model(const AnswerVerb& verb) {
  gguf::Document document = open_document(verb);
  OpenOptions open = open_options(verb);
  open.log = log_to_stderr(verb);
  if (verb.draft.empty()) {
    make_it_fit(verb, document, open);
  } else {
    make_it_fit_beside_draft(verb, document, open);
  }
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

void AnswerVerb::follow() { static_cast<void>(open_model(*this)); }

}  // namespace mica::program
