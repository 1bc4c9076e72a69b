// SPDX-License-Identifier: Apache-2.0
//
// From a prompt to text: feed, sample, return pieces at UTF-8 boundaries, stop with a reason. One answer at a
// time; several at once are runtime/batch.hpp.
#pragma once

#include "mica/runtime/generation.hpp"

#include <cstddef>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace mica {

namespace detail {

/// Advances a generation until it is over. cancel is read between steps.
template <class Generation>
void run(Generation& generation) {
  auto& session = generation.session();
  std::vector<std::size_t> rows;
  while (!generation.over()) {
    if (generation.options().between_steps) generation.options().between_steps();
    const auto tokens = generation.next(session.model().chunk());
    if (tokens.empty()) continue;
    const model::StepStatus status = session.feed_drafts(tokens, generation.drafts());
    if (status != model::StepStatus::ok) {
      generation.refuse(status);
      continue;
    }
    rows.clear();
    for (std::size_t r = generation.rows(); r > 0; --r)
      rows.push_back(session.row(session.tokens().size() - r));
    const auto logits =
        rows.empty() ? MatrixView<const float>() : logits_of(session.model(), rows, generation.best());
    if (logits.rows() == rows.size()) {
      generation.take(logits);
    } else {
      generation.lose(StopReason::read_failed);
    }
  }
}

}  // namespace detail

/// Feeds the prompt and samples until a stop. on_text(std::string_view) gets whole UTF-8 sequences; false
/// stops (cancelled); it steps no session of the model. An empty prompt continues the session, which then
/// needs at least one token. The session afterwards holds the prompt and the answer without its last
/// GenerateResult::unfed tokens: the one that was sampled last, and those that were forced after it. If it
/// ends while it reads the prompt, the session holds those tokens of the prompt that were fed.
/// sampler: chooses them, such as sample::Standard, sample::Chain or one of your own (sample/concept.hpp).
/// drafter: drafts tokens (runtime/drafter.hpp), which may make it faster and never changes the answer.
/// constraint: allows tokens, and forces them (constraint/concept.hpp). The prompt does not advance it.
/// Raises ErrorCode::failed for non-finite logits, naming the layer; limit where the constraint allows no
/// token; usage for ids outside the vocabulary and for more drafts than the model has rows of logits;
/// unsupported for drafts on a model that does not take them back (takes_drafts()).
template <StepModel Model, text::Tokenizer Tokenizer, Sampler S, Drafter D, Constraint C, class OnText>
GenerateResult generate(Session<Model>& session, const Tokenizer& tokenizer, S& sampler, D& drafter,
                        C& constraint, std::span<const text::TokenId> prompt, const GenerateOptions& options,
                        OnText&& on_text) {
  const auto give = [&](std::string_view text) { return on_text(text); };
  Generation generation(session, tokenizer, sampler, drafter, constraint, prompt, options, give);
  if (prompt.empty()) generation.resume(session.logits());
  detail::run(generation);
  generation.raise_if_failed();
  return std::move(generation.result());
}

/// The same without a constraint.
template <StepModel Model, text::Tokenizer Tokenizer, Sampler S, Drafter D, class OnText>
GenerateResult generate(Session<Model>& session, const Tokenizer& tokenizer, S& sampler, D& drafter,
                        std::span<const text::TokenId> prompt, const GenerateOptions& options,
                        OnText&& on_text) {
  NoConstraint unconstrained;
  return generate(session, tokenizer, sampler, drafter, unconstrained, prompt, options, on_text);
}

/// The same with a constraint and without drafts.
template <StepModel Model, text::Tokenizer Tokenizer, Sampler S, Constraint C, class OnText>
GenerateResult generate(Session<Model>& session, const Tokenizer& tokenizer, S& sampler, C& constraint,
                        std::span<const text::TokenId> prompt, const GenerateOptions& options,
                        OnText&& on_text) {
  NoDrafter undrafted;
  return generate(session, tokenizer, sampler, undrafted, constraint, prompt, options, on_text);
}

/// The same without both.
template <StepModel Model, text::Tokenizer Tokenizer, Sampler S, class OnText>
GenerateResult generate(Session<Model>& session, const Tokenizer& tokenizer, S& sampler,
                        std::span<const text::TokenId> prompt, const GenerateOptions& options,
                        OnText&& on_text) {
  NoDrafter undrafted;
  NoConstraint unconstrained;
  return generate(session, tokenizer, sampler, undrafted, unconstrained, prompt, options, on_text);
}

}  // namespace mica
