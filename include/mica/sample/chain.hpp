// SPDX-License-Identifier: Apache-2.0
//
// A sampler that is composed at compile time: stages in the order in which they are written.
//
//   sample::Chain chain(sample::TopK(40), sample::Temperature(0.8f), sample::Dist(seed));
//   generate(session, tokenizer, chain, prompt, options, on_text);
#pragma once

#include "mica/sample/concept.hpp"
#include "mica/sample/stages.hpp"

#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace mica::sample {

/// Stages one after the other; itself a stage, and a sampler where the last stage leaves one candidate, as
/// Greedy and Dist do. One thread at a time.
template <SamplerStage... Stages>
class Chain {
 public:
  /// Takes the stages, to run them in this order.
  explicit Chain(Stages... stages) noexcept : stages_(std::move(stages)...) {}

  // Required by SamplerStage
  void apply(Candidates& candidates) noexcept {
    std::apply([&](Stages&... stage) { (stage.apply(candidates), ...); }, stages_);
  }
  void accept(TokenId token) noexcept {
    std::apply([&](Stages&... stage) { (stage.accept(token), ...); }, stages_);
  }

  // Required by Sampler
  /// The token that the last stage leaves; empty when a logit is NaN or +infinity, or all are -infinity.
  /// Allocates 12 bytes for each logit at the first call, which no ledger counts. Where bytes must be
  /// counted, use sample::Standard, which takes an allocator.
  [[nodiscard]] std::optional<TokenId> sample(std::span<const float> logits) {
    if (memory_.size() < logits.size()) memory_.resize(logits.size());
    Candidates candidates(memory_);
    if (!candidates.fill(logits)) return std::nullopt;
    apply(candidates);
    MICA_ASSERT(candidates.size() == 1);
    return candidates.chosen();
  }

  // Specific to Chain
  /// The stage of this type; a chain with none or two of it does not compile.
  template <class Stage>
  [[nodiscard]] const Stage& stage() const noexcept {
    return std::get<Stage>(stages_);
  }

 private:
  std::tuple<Stages...> stages_;
  std::vector<Candidate> memory_;
};
static_assert(SamplerStage<Chain<TopK, Dist>> && Sampler<Chain<TopK, Dist>>);

}  // namespace mica::sample
