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

namespace detail {

/// The check of a stage, which the first error of a compiler names.
template <class Stage>
struct CheckedStage {
  static_assert(SamplerStage<Stage>,
                "mica::sample::Chain: a stage needs void apply(mica::sample::Candidates&) noexcept and "
                "void accept(mica::TokenId) noexcept, a mica::SamplerStage (sample/concept.hpp)");
  using Type = Stage;
};

}  // namespace detail

/// Stages one after the other; itself a stage, and a sampler if one of them is a ChoosingStage, as Greedy,
/// Dist and Mirostat are. One thread at a time.
template <class... Stages>
class Chain {
 public:
  /// Takes the stages, to run them in this order.
  explicit Chain(Stages... stages) noexcept : stages_(std::move(stages)...) {}

  // Required by ChoosingStage
  static constexpr bool chooses = (ChoosingStage<Stages> || ...);

  // Required by SamplerStage
  void apply(Candidates& candidates) noexcept {
    std::apply([&](Stages&... stage) { (stage.apply(candidates), ...); }, stages_);
  }
  void accept(TokenId token) noexcept {
    std::apply([&](Stages&... stage) { (stage.accept(token), ...); }, stages_);
  }

  // Required by Sampler
  /// The token that the stages leave; empty when a logit is NaN or +infinity, or all are -infinity.
  /// Allocates 12 bytes for each logit at the first call, which no ledger counts. Where bytes must be
  /// counted, use sample::Standard, which takes an allocator.
  [[nodiscard]] std::optional<TokenId> sample(std::span<const float> logits) {
    static_assert(chooses,
                  "mica::sample::Chain: no stage chooses a token: end with Greedy, Dist, Mirostat or a "
                  "mica::ChoosingStage of your own, which has chooses = true (sample/concept.hpp)");
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
  std::tuple<typename detail::CheckedStage<Stages>::Type...> stages_;
  std::vector<Candidate> memory_;
};
static_assert(ChoosingStage<Chain<TopK, Dist>> && Sampler<Chain<TopK, Dist>>);

}  // namespace mica::sample
