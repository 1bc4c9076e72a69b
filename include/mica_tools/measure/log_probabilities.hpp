// SPDX-License-Identifier: Apache-2.0
//
// A row of logits as logarithms of probabilities: log softmax, in double, computed on demand.
#pragma once

#include "mica/base/assert.hpp"

#include <cmath>
#include <cstddef>
#include <span>

namespace mica {

/// A view of a row of logits that knows its normalization. Cost: one pass over the row, an exp for each
/// token. A row with a NaN or an infinity has no finite log_sum().
class LogProbabilities {
 public:
  /// Requires a row that is not empty and outlives this.
  explicit LogProbabilities(std::span<const float> logits) noexcept : logits_(logits) {
    MICA_ASSERT(!logits.empty());
    for (std::size_t i = 1; i < logits.size(); ++i) {
      if (logits[i] > logits[top_]) top_ = i;
    }
    const double max = static_cast<double>(logits[top_]);
    double sum = 0;
    for (const float x : logits) sum += std::exp(static_cast<double>(x) - max);
    log_sum_ = max + std::log(sum);
  }

  [[nodiscard]] std::span<const float> logits() const noexcept { return logits_; }
  /// The logarithm of the sum of all e to the power of a logit.
  [[nodiscard]] double log_sum() const noexcept { return log_sum_; }
  /// The most likely token; of several the first.
  [[nodiscard]] std::size_t top() const noexcept { return top_; }
  /// The logarithm of the probability of a token. Requires token < logits().size().
  [[nodiscard]] double operator[](std::size_t token) const noexcept {
    return static_cast<double>(logits_[token]) - log_sum_;
  }

 private:
  std::span<const float> logits_;
  std::size_t top_ = 0;
  double log_sum_ = 0;
};

}  // namespace mica
