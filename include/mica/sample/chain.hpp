// SPDX-License-Identifier: Apache-2.0
//
// A sampler put together at compile time: stages in the order in which they are written.
//
//   sample::Chain chain(sample::TopK(40), sample::Temperature(0.8f), sample::Dist(seed));
//   auto token = sample::choose(chain, candidates, logits);
#pragma once

#include "mica/sample/concept.hpp"
#include "mica/sample/dist.hpp"
#include "mica/sample/top_k.hpp"

#include <optional>
#include <span>
#include <tuple>
#include <utility>

namespace mica::sample {

/// Stages one after the other; itself a stage.
template <SamplerStage... Stages>
class Chain {
 public:
  explicit Chain(Stages... stages) noexcept : stages_(std::move(stages)...) {}

  // Required by SamplerStage
  void apply(Candidates& candidates) noexcept {
    std::apply([&](Stages&... stage) { (stage.apply(candidates), ...); }, stages_);
  }
  void accept(TokenId token) noexcept {
    std::apply([&](Stages&... stage) { (stage.accept(token), ...); }, stages_);
  }

  // Specific to Chain
  template <class Stage>
  [[nodiscard]] const Stage& stage() const noexcept {
    return std::get<Stage>(stages_);
  }

 private:
  std::tuple<Stages...> stages_;
};
static_assert(SamplerStage<Chain<TopK, Dist>>);

/// The token that `stage` chooses for a row of logits; it leaves one candidate, as Greedy and Dist do.
/// Empty when a logit is NaN or +infinity or all are -infinity.
template <SamplerStage Stage>
[[nodiscard]] std::optional<TokenId> choose(Stage& stage, Candidates& candidates,
                                            std::span<const float> logits) noexcept {
  if (!candidates.fill(logits)) return std::nullopt;
  stage.apply(candidates);
  MICA_ASSERT(candidates.size() == 1);
  return candidates[0].id;
}

}  // namespace mica::sample
