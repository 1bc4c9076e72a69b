// SPDX-License-Identifier: Apache-2.0
//
// Drafters predict the next tokens, so that one step can check several (speculative decoding). A draft costs
// time and never changes an answer: generation accepts the drafts that the sampler chooses itself, from the
// same logits.
//
//   text ... the cat sat on | the        last: the token that no step has run yet
//   drafts                    mat . the  one step runs 1 + 3 tokens and says how many were right
#pragma once

#include "mica/base/token_id.hpp"

#include <concepts>
#include <cstddef>
#include <span>

namespace mica {

/// The maximum of drafts in a step, of any drafter.
inline constexpr std::size_t draft_limit = 64;

/// Predicts the continuation of a text. max_drafts(): the maximum of drafts, the same at every call,
/// at most draft_limit.
/// draft(before, last, drafts): writes tokens that may follow `before` and then `last`, and returns their
/// number; drafts.size() <= max_drafts(). Ids are below n_vocab. Allocates nothing. One thread at a time.
// clang-format off
template <class D>
concept Drafter = requires(D& drafter, const D& constant, std::span<const TokenId> before, TokenId last,
                           std::span<TokenId> drafts) {
  { constant.max_drafts() } noexcept -> std::same_as<std::size_t>;
  { drafter.draft(before, last, drafts) } noexcept -> std::same_as<std::size_t>;
};
// clang-format on

/// A drafter that reads hidden states, which are there until the next step: before a step without drafts
/// follow(before, last) is called in place of draft().
// clang-format off
template <class D>
concept FollowingDrafter = Drafter<D> && requires(D& drafter, std::span<const TokenId> before, TokenId last) {
  { drafter.follow(before, last) } noexcept -> std::same_as<void>;
};
// clang-format on

/// Never drafts: one token a step.
struct NoDrafter {
  // Required by Drafter
  [[nodiscard]] constexpr std::size_t max_drafts() const noexcept { return 0; }
  [[nodiscard]] std::size_t draft(std::span<const TokenId>, TokenId, std::span<TokenId>) noexcept {
    return 0;
  }
};
static_assert(Drafter<NoDrafter>);

}  // namespace mica
