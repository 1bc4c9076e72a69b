// SPDX-License-Identifier: Apache-2.0
//
// Probabilities of the tokens of an answer: log softmax over the vocabulary of the logits as the model gave
// them, before the mask of a constraint, penalties, temperature and the other stages of a sampler. Computed
// when GenerateOptions::on_token is set, and not otherwise. A token that a constraint forces has no logits:
// its probability is 1, and no other tokens are given.
#pragma once

#include "mica/sample/candidates.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

namespace mica {

/// A token and the natural logarithm of its probability.
struct ScoredToken {
  TokenId id = 0;             // below the size of the vocabulary
  float log_probability = 0;  // at most 0
};

/// A token of an answer, and the most likely ones at its position, the best first.
struct TokenScores {
  ScoredToken token;                 // the sampled or forced one
  std::span<const ScoredToken> top;  // valid until the call ends; empty for a forced one
};

namespace detail {

/// Allocates when it is made. Cost of a token: an exp for each entry of the vocabulary.
class TokenScorer {
 public:
  explicit TokenScorer(std::size_t top) : best_(top), top_(top) {}

  /// Requires finite logits, as many as `top` at least.
  [[nodiscard]] TokenScores of(std::span<const float> logits, TokenId id) noexcept {
    const double max = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
    double sum = 0;
    for (const float x : logits) sum += std::exp(static_cast<double>(x) - max);
    const double log_sum = max + std::log(sum);
    const auto scored = [&](TokenId token) {
      return ScoredToken{token, static_cast<float>(static_cast<double>(logits[token]) - log_sum)};
    };
    sample::Candidates candidates({best_.data(), best_.size()});
    if (!best_.empty()) static_cast<void>(candidates.fill_best(logits, best_.size()));
    for (std::size_t i = 0; i < top_.size(); ++i) top_[i] = scored(best_[i].id);
    return {scored(id), {top_.data(), top_.size()}};
  }

 private:
  std::vector<sample::Candidate> best_;
  std::vector<ScoredToken> top_;
};

}  // namespace detail
}  // namespace mica
