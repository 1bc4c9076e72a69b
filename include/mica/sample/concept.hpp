// SPDX-License-Identifier: Apache-2.0
//
// From logits to a token. A sampler is a list of stages over one set of candidates: most change or reduce it,
// the last leaves one. The order of the stages is the caller's.
#pragma once

#include "mica/sample/candidates.hpp"

#include <concepts>

namespace mica {

/// One stage. apply() shapes or narrows the candidates and leaves at least one; accept() is called for every
/// token that becomes part of the text, sampled or given. Neither allocates.
// clang-format off
template <class S>
concept SamplerStage = requires(S stage, sample::Candidates& candidates, sample::TokenId token) {
  { stage.apply(candidates) } noexcept -> std::same_as<void>;
  { stage.accept(token) } noexcept -> std::same_as<void>;
};
// clang-format on

namespace sample {

/// The base of stages that do not depend on the text.
struct Memoryless {
  void accept(TokenId /*token*/) noexcept {}
};

}  // namespace sample
}  // namespace mica
