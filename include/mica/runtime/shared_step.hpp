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
    std::size_t drafts = 0;             // the last ones of them, as in Session::feed_drafts()
  };

  /// Model and sessions outlive it.
  explicit SharedStep(Model& model) noexcept : model_(&model) {}

  /// Appends tokens to the sessions, [1, model.chunk()] in all; each session stands in one feed. All take
  /// theirs, or none: then the result names the first feed that was refused, by memory, context or the file
  /// of older tokens. Tokens that a rewind has cost a recurrent state are run again: in this step if they fit,
  /// else before it. Raises ErrorCode::usage for ids outside the vocabulary.
  model::StepResult step(std::span<const Feed> feeds) {
    sequences_.clear();
    std::size_t left = model_->chunk();  // tokens that the step may still have
    for (const Feed& feed : feeds) left -= feed.tokens.size();
    for (std::size_t i = 0; i < feeds.size(); ++i) {
      Session<Model>& session = *feeds[i].session;
      session.check_ids(feeds[i].tokens);
      const model::StepStatus replayed = session.replay(left);
      if (replayed != model::StepStatus::ok) return {replayed, i};
      if (!session.allows(feeds[i].tokens.size())) return {model::StepStatus::context_full, i};
      left -= session.lost();
      sequences_.push_back(session.part_of(feeds[i].tokens, feeds[i].drafts));
    }
    const model::StepResult result = model_->step(sequences_);
    if (result.status != model::StepStatus::ok) return result;
    std::size_t row = 0;
    for (std::size_t i = 0; i < feeds.size(); ++i) {
      const std::size_t all = sequences_[i].tokens.size(), n = feeds[i].tokens.size();
      feeds[i].session->took(feeds[i].tokens, row + all - n);
      row += all;
    }
    return result;
  }

 private:
  Model* model_;
  std::vector<typename Model::SequenceStep> sequences_;
};

}  // namespace mica
