// SPDX-License-Identifier: Apache-2.0
#include "draft.hpp"

#include "budgeted.hpp"
#include "console.hpp"
#include "pacing.hpp"
#include "progress.hpp"

#include <algorithm>

namespace mica::program {
namespace {

constexpr std::size_t tokens_without_c = 4096;  // beyond them it guesses no more

/// In memory, with steps for a few tokens beside those for the prompt.
OpenOptions how_to_open(const Options& options) {
  OpenOptions open = open_options(options);
  open.n_ctx = options.n_ctx != 0 ? options.n_ctx : tokens_without_c;
  open.logits_rows = 1;
  open.memory_bytes.reset();
  open.choice.weights = paging::Choice::resident;
  return open;
}

Model open_draft(const Options& options) {
  OpenOptions how = how_to_open(options);
  how.memory_bytes = draft_bytes(options);
  how.runs = pacer_of(options);
  const Waiting waiting(options, join("loading ", escaped(options.draft)));
  return open(options.draft, how);
}

}  // namespace

std::uint64_t draft_bytes(const Options& options) {
  return plan_run(gguf::open(options.draft), question_of(how_to_open(options))).peak_bytes;
}

Draft::Draft(const Options& options, const Model& target)
    : model_(open_draft(options)),
      drafter_(model_.transformer(), target.tokenizer().vocabulary().size(), options.draft_max) {
  const text::Vocabulary &own = model_.tokenizer().vocabulary(), &other = target.tokenizer().vocabulary();
  const auto common = static_cast<TokenId>(std::min(own.size(), other.size()));
  for (TokenId id = 0; id < common; ++id) {
    MICA_CHECK(own.text(id) == other.text(id), usage, options.draft, ": token ", id, " is '",
               escaped(own.text(id)), "', in the model that it is to guess for '", escaped(other.text(id)),
               "'; a draft needs the same vocabulary");
  }
}

}  // namespace mica::program
