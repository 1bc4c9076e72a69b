// SPDX-License-Identifier: Apache-2.0
//
// Sessions of one model in one step: weights are read once for all of them. runtime/batch.hpp generates
// several answers; this is for programs that choose the tokens of each step.
#pragma once

#include "mica/runtime/session.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace mica {

/// Feeds several sessions at once. One thread at a time.
template <StepModel Model>
class SharedStep {
 public:
  /// Tokens that a session is to take.
  struct Feed {
    Session<Model>* session = nullptr;  // of the model; in one feed of a step
    std::span<const TokenId> tokens;    // at least one
  };

  /// Model and sessions outlive it.
  explicit SharedStep(Model& model) noexcept : model_(&model) {}

  /// Appends tokens to the sessions, [1, model.chunk()] in all; each session stands in one feed. All take
  /// theirs, or none: then the result names the first feed that was refused, by memory, context or the file
  /// of older tokens. Tokens that a rewind has cost a recurrent state are run again before, in steps of their
  /// own. Raises ErrorCode::usage for ids outside the vocabulary.
  model::StepResult step(std::span<const Feed> feeds) {
    sequences_.clear();
    for (std::size_t i = 0; i < feeds.size(); ++i) {
      feeds[i].session->check_ids(feeds[i].tokens);
      const model::StepStatus replayed = feeds[i].session->replay();
      if (replayed != model::StepStatus::ok) return {replayed, i};
      if (!feeds[i].session->allows(feeds[i].tokens.size())) return {model::StepStatus::context_full, i};
      sequences_.push_back({&feeds[i].session->cache_, feeds[i].tokens});
    }
    const model::StepResult result = model_->step(sequences_);
    if (result.status != model::StepStatus::ok) return result;
    std::size_t row = 0;
    for (const Feed& feed : feeds) {
      feed.session->took(feed.tokens, row);
      row += feed.tokens.size();
    }
    return result;
  }

 private:
  Model* model_;
  std::vector<typename Model::SequenceStep> sequences_;
};

}  // namespace mica
