// SPDX-License-Identifier: Apache-2.0
//
// One number for the quality of a fit: the billions (10^9) of weights that a dense model of January 2025
// would need for the same quality.
//
//   size      weights; of a mixture the geometric mean of all weights and of those that a token uses
//   date      x 2 for each half year after January 2025, / 2 for each half year before
//   bits      x the fraction that a model is worth in its quantisation (worth_of)
//   purpose   x 4 for the use that the model was made for, / 2 for other uses (use_factor)
//
// The date: Qwen3 1.7B, 4B, 8B, 14B and 32B are as good as Qwen2.5 3B, 7B, 14B, 32B and 72B of seven months
// before (Qwen3 technical report, arXiv 2505.09388). A doubling in six months agrees with all five pairs. For
// the best models of each time it is 3.5 months (C. Xiao et al., Densing Law of LLMs, arXiv 2412.04315).
//
// Limit: all models of one size and month have the same number, whatever their publisher and their training
// data. Benchmark scores are not used, since no benchmark was measured for all of these models by one party
// in one way.
#pragma once

#include "mica_tools/fit/select.hpp"
#include "mica_tools/fit/use.hpp"

#include <cmath>

namespace mica::fit {

/// The terms of a quality, and their product.
struct Quality {
  double billions = 0;  // of a dense model
  double date = 1;      // date_factor()
  double worth = 1;     // of the quantisation
  double purpose = 1;   // use_factor()
  double total = 0;     // their product
};

/// Months in which the size of an equally good model halves.
inline constexpr int doubling_months = 6;

/// The weights of a dense model that is as good as one with `all` weights, of which a token uses `active`.
/// Without experts, the unused weights are rows of embedding tables, and do not count.
[[nodiscard]] inline double dense_weights(double all, double active, double experts) noexcept {
  return experts == 0 ? active : std::sqrt(all * active);
}

/// 1 in January 2025.
[[nodiscard]] inline double date_factor(Month published) noexcept {
  return std::exp2(static_cast<double>(published.since({2025, 1})) / doubling_months);
}

/// The quality of a fit. A file of an unknown model counts as one of January 2025 that was made for
/// everything.
[[nodiscard]] inline Quality quality_of(const Fit& fit, const Use& use) noexcept {
  Quality quality;
  quality.billions = dense_weights(fit.parameters, fit.active, fit.experts) / 1e9;
  quality.worth = fit.worth;
  if (fit.model != nullptr) {
    quality.date = date_factor(fit.model->published);
    quality.purpose = use_factor(use, fit.model->made_for);
  }
  quality.total = quality.billions * quality.date * quality.worth * quality.purpose;
  return quality;
}

}  // namespace mica::fit
