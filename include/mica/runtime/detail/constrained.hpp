// SPDX-License-Identifier: Apache-2.0
//
// The constraint of a generation, and the memory for its masks: none where the constraint allows everything.
#pragma once

#include "mica/base/token_id.hpp"
#include "mica/constraint/concept.hpp"
#include "mica/constraint/token_mask.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace mica::detail {

template <Constraint C>
class Constrained {
 public:
  /// Tokens of one call of forced(). A fixed number: the tokens of a text may depend on where it is divided.
  static constexpr std::size_t max_forced = 64;

  /// The constraint outlives it. n_vocab: entries of the vocabulary.
  Constrained(C& constraint, std::size_t n_vocab) : constraint_(constraint), n_vocab_(n_vocab) {
    if constexpr (C::constrains) {
      if (!constraint.active()) return;
      memory_.mask = constraint::TokenMask(n_vocab);
      memory_.logits.resize(n_vocab);
      memory_.forced.resize(max_forced);
    }
  }

  [[nodiscard]] bool active() const noexcept { return C::constrains && constraint_.active(); }
  /// The logits, with -infinity for tokens that are not allowed; empty where the constraint fails or allows
  /// none. Valid until the next call.
  [[nodiscard]] std::span<const float> masked(std::span<const float> logits) noexcept {
    if constexpr (C::constrains) {
      if (active()) {
        auto& [mask, out, forced] = memory_;
        mask.clear();
        if (!constraint_.allowed(mask) || mask.size() != n_vocab_ || mask.count() == 0) return {};
        mask.apply(logits, out);
        return out;
      }
    }
    return logits;
  }
  /// False for a token that is not allowed.
  [[nodiscard]] bool advance(TokenId id) noexcept {
    return !active() || (id < n_vocab_ && constraint_.advance(id));
  }
  /// Tokens that follow with certainty. Valid until the next call.
  [[nodiscard]] std::span<const TokenId> forced() noexcept {
    if constexpr (C::constrains) {
      if (active()) return std::span(memory_.forced).first(constraint_.forced(memory_.forced));
    }
    return {};
  }
  /// The number of drafts, from the first, that are allowed.
  [[nodiscard]] std::size_t allowed_drafts(std::span<const TokenId> drafts) noexcept {
    if (!active()) return drafts.size();
    std::size_t n = 0;
    while (n < drafts.size() && advance(drafts[n])) ++n;
    constraint_.rewind(n);
    return n;
  }
  [[nodiscard]] std::string why() const { return constraint_.why(); }

 private:
  struct Memory {
    constraint::TokenMask mask;
    std::vector<float> logits;    // (n_vocab)
    std::vector<TokenId> forced;  // (max_forced)
  };
  struct NoMemory {};

  C& constraint_;
  std::size_t n_vocab_;
  [[no_unique_address]] std::conditional_t<C::constrains, Memory, NoMemory> memory_;
};

}  // namespace mica::detail
