// SPDX-License-Identifier: Apache-2.0
//
// From logits to a token. A sampler chooses one; sample::Chain is a sampler made of stages over one set of
// candidates: most of them reshape or narrow the set, the last leaves one. The caller chooses their order.
#pragma once

#include "mica/sample/candidates.hpp"

#include <concepts>
#include <cstddef>
#include <optional>
#include <span>

namespace mica {

/// Chooses the next token from a row of logits. sample() is empty where no token can be chosen; accept() is
/// called with every token of the prompt and of the answer, in order. Not thread-safe; one sampler for each
/// sequence.
// clang-format off
template <class S>
concept Sampler = requires(S sampler, std::span<const float> logits, sample::TokenId token) {
  { sampler.sample(logits) } -> std::same_as<std::optional<sample::TokenId>>;  // does not accept it
  { sampler.accept(token) };                                                   // a token of the text
};

/// A sampler that looks at the best logits alone. wanted(n_vocab) says at how many of n_vocab; n_vocab means
/// all. The others may then be any finite numbers that are not above these.
template <class S>
concept SelectiveSampler = Sampler<S> && requires(const S& sampler, std::size_t n_vocab) {
  { sampler.wanted(n_vocab) } noexcept -> std::same_as<std::size_t>;
};
// clang-format on

/// One stage. apply() shapes or narrows the candidates and leaves at least one; accept() is called with
/// every token of the prompt and of the answer. Neither allocates. One thread at a time.
// clang-format off
template <class S>
concept SamplerStage = requires(S stage, sample::Candidates& candidates, sample::TokenId token) {
  { stage.apply(candidates) } noexcept -> std::same_as<void>;  // once for each token that is chosen
  { stage.accept(token) } noexcept -> std::same_as<void>;      // a token of the text
};

/// A stage that leaves one candidate; a sample::Chain that is a sampler has one. S::chooses is true.
template <class S>
concept ChoosingStage = SamplerStage<S> && S::chooses;
// clang-format on

namespace sample {

/// The base of stages that do not depend on the text.
struct Memoryless {
  void accept(TokenId /*token*/) noexcept {}  // changes nothing
};

}  // namespace sample
}  // namespace mica
