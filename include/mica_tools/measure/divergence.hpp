// SPDX-License-Identifier: Apache-2.0
//
// The divergence of a model from the model of a file of base logits: perplexities and their ratio,
// Kullback-Leibler divergence, and the change of the probability of the right token. The figures are those of
// llama-perplexity.
#pragma once

#include "mica/base/token_id.hpp"
#include "mica_tools/measure/log_probabilities.hpp"
#include "mica_tools/measure/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace mica {

/// Compares rows of a model with rows of its base. Keeps eight bytes a row.
class Divergence {
 public:
  /// The next row of both, and the token that came next. Requires rows of one size and next within it.
  void add(const LogProbabilities& model, const QuantizedRow& base, TokenId next) {
    MICA_ASSERT(model.logits().size() == base.size() && next < base.size());
    double kl = 0;
    std::size_t top = 0;
    for (std::size_t token = 0; token < base.size(); ++token) {
      if (base.code(token) > base.code(top)) top = token;
      const double log_base = base[token];
      if (log_base > floor) kl += std::exp(log_base) * (log_base - model[token]);
    }
    const double nll = -model[next];
    const double nll_base = -base[next];
    const double dp = std::exp(-nll) - std::exp(-nll_base);
    nll_.add(nll);
    nll_base_.add(nll_base);
    nll_products_ += nll * nll_base;
    kl_.add(kl);
    dp_.add(dp);
    dp_squared_.add(dp * dp);
    same_top_ += top == model.top() ? 1 : 0;
    kl_values_.push_back(static_cast<float>(kl));
    dp_values_.push_back(static_cast<float>(dp));
  }

  /// Rows that were added.
  [[nodiscard]] std::size_t count() const noexcept { return kl_.count(); }

  /// Mean negative log-likelihood of the model and of its base; e to their powers are the perplexities.
  [[nodiscard]] Estimate nll() const noexcept { return nll_.estimate(); }
  [[nodiscard]] Estimate nll_base() const noexcept { return nll_base_.estimate(); }
  [[nodiscard]] Estimate perplexity() const noexcept { return nll().exp(); }
  [[nodiscard]] Estimate perplexity_base() const noexcept { return nll_base().exp(); }
  /// ln(perplexity / perplexity_base). Its error takes into account that both were measured on the same text.
  [[nodiscard]] Estimate log_ratio() const noexcept {
    const double e = nll_.error();
    const double e_base = nll_base_.error();
    const double variance = e * e + e_base * e_base - 2 * covariance();
    return {nll_.mean() - nll_base_.mean(), std::sqrt(std::max(0.0, variance))};
  }
  /// perplexity - perplexity_base.
  [[nodiscard]] Estimate difference() const noexcept {
    const Estimate ppl = perplexity();
    const Estimate base = perplexity_base();
    const double shared = ppl.value * base.value * covariance();
    const double variance = ppl.error * ppl.error + base.error * base.error - 2 * shared;
    return {ppl.value - base.value, std::sqrt(std::max(0.0, variance))};
  }
  /// Of both log-likelihoods, -1 to 1; 0 while it has no meaning.
  [[nodiscard]] double correlation() const noexcept {
    const double spread = nll_.error() * nll_base_.error();
    return spread > 0 ? covariance() / spread : 0.0;
  }

  /// Mean Kullback-Leibler divergence of the model from its base, in nats.
  [[nodiscard]] Estimate kl() const noexcept { return kl_.estimate(); }
  /// Those of single rows. Copies and sorts them.
  [[nodiscard]] Sorted kl_values() const { return Sorted(kl_values_); }
  /// Mean change of the probability of the token that came next.
  [[nodiscard]] Estimate dp() const noexcept { return dp_.estimate(); }
  /// Those of single rows. Copies and sorts them.
  [[nodiscard]] Sorted dp_values() const { return Sorted(dp_values_); }
  /// The root of its mean square.
  [[nodiscard]] Estimate dp_rms() const noexcept {
    const double rms = std::sqrt(dp_squared_.mean());
    return {rms, rms > 0 ? 0.5 / rms * dp_squared_.error() : 0.0};
  }
  /// Part of the rows in which both hold the same token for the likeliest.
  [[nodiscard]] Estimate same_top() const noexcept {
    if (count() < 2) return {count() == 0 ? 0.0 : static_cast<double>(same_top_), 0.0};
    const double n = static_cast<double>(count());
    const double part = static_cast<double>(same_top_) / n;
    return {part, std::sqrt(part * (1 - part) / (n - 1))};
  }

 private:
  // Tokens with a lower probability in the base are left out: rows of the file end there.
  static constexpr double floor = -16.0;

  /// Of the two means.
  [[nodiscard]] double covariance() const noexcept {
    if (count() < 2) return 0.0;
    const double n = static_cast<double>(count());
    return (nll_products_ / n - nll_.mean() * nll_base_.mean()) / (n - 1);
  }

  RunningMean nll_, nll_base_, kl_, dp_, dp_squared_;
  double nll_products_ = 0;  // sum of nll * nll_base
  std::size_t same_top_ = 0;
  std::vector<float> kl_values_, dp_values_;
};

}  // namespace mica
