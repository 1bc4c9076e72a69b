// SPDX-License-Identifier: Apache-2.0
#include "draft.hpp"

#include "budgeted.hpp"
#include "console.hpp"
#include "pacing.hpp"
#include "progress.hpp"

#include <algorithm>

namespace mica::program {
namespace {

/// In memory, with steps for a few tokens beside those for the prompt.
OpenOptions how_to_open(const AnswerVerb& verb, std::size_t n_ctx) {
  OpenOptions open = open_options(verb);
  open.n_ctx = n_ctx;
  open.logits_rows = 1;
  open.memory_bytes.reset();
  open.choice.weights = paging::Choice::resident;
  open.choice.ranks = {};  // rank 0 drafts alone
  open.leads = nullptr;
  return open;
}

Model load_draft(const AnswerVerb& verb, std::size_t n_ctx) {
  OpenOptions how = how_to_open(verb, n_ctx);
  how.memory_bytes = draft_bytes(verb, n_ctx);
  how.runs = pacer_of(verb);
  const Waiting waiting(verb, join("loading ", escaped(verb.draft)));
  return open(verb.draft, how);
}

}  // namespace

std::unique_ptr<Draft> open_draft(const AnswerVerb& verb, Model& target) {
  return verb.draft.empty() ? nullptr : std::make_unique<Draft>(verb, target);
}

std::size_t draft_context(const AnswerVerb& verb, std::size_t trained) {
  constexpr std::size_t tokens_without_c = 4096;  // after them it drafts nothing
  return verb.n_ctx != 0 ? verb.n_ctx : std::min(trained, tokens_without_c);
}

std::uint64_t draft_bytes(const AnswerVerb& verb, std::size_t n_ctx) {
  return plan_run(gguf::open(verb.draft), question_of(how_to_open(verb, n_ctx))).peak_bytes;
}

Draft::Draft(const AnswerVerb& verb, Model& target)
    : model_(load_draft(
          verb, std::min(draft_context(verb, target.config().n_ctx_train), target.transformer().n_ctx()))),
      drafter_(model_.transformer(), target.tokenizer().vocabulary().size(), verb.draft_max) {
  const text::Vocabulary &own = model_.tokenizer().vocabulary(), &other = target.tokenizer().vocabulary();
  const auto common = static_cast<TokenId>(std::min(own.size(), other.size()));
  for (TokenId id = 0; id < common; ++id) {
    MICA_CHECK(own.text(id) == other.text(id), usage, verb.draft, ": token ", id, " is '",
               escaped(own.text(id)), "', in the model that it drafts for '", escaped(other.text(id)),
               "'; a draft needs the same vocabulary");
  }
}

}  // namespace mica::program
