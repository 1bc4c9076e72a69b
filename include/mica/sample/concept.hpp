// SPDX-License-Identifier: Apache-2.0
//
// From logits to a token. A sampler is a row of stages over one set of candidates: most shape it or make it
// smaller, the last leaves one. The order of the stages is the caller's.
#pragma once

#include "mica/sample/candidates.hpp"

#include <concepts>

namespace mica {

/// One stage. apply() shapes or narrows the candidates and leaves at least one; accept() hears of every token
/// that became part of the text, chosen or given. Neither allocates.
// clang-format off
template <class S>
concept SamplerStage = requires(S stage, sample::Candidates& candidates, sample::TokenId token) {
  { stage.apply(candidates) } noexcept -> std::same_as<void>;
  { stage.accept(token) } noexcept -> std::same_as<void>;
};
// clang-format on

namespace sample {

/// The base of stages that do not look at the text.
struct Memoryless {
  void accept(TokenId /*token*/) noexcept {}
};

}  // namespace sample
}  // namespace mica
