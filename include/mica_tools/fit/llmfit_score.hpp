// SPDX-License-Identifier: Apache-2.0
//
// llmfit's score of a fit: four terms from 0 to 100, weighted by the use of the model. It is shown beside our
// order (fit/rank.hpp) and used for nothing else.
//
//   quality   30 45 60 75 82 89 if a token uses less than 1 3 7 10 20 40 billion weights, otherwise 95; minus
//             the penalty of the quantisation
//   speed     tokens a second / target * 100, at most 100
//   fit       100 up to 70 % of the fuller pool, then 100 * exp(-((part - 0.7) / 0.2)^2 / 2)
//   context   100 with the tokens of the use, 70 with half of them, else 30
//
// Limit: llmfit also adds points for names of makers, for generations, dates and benchmarks.
#pragma once

#include "mica_tools/fit/select.hpp"
#include "mica_tools/fit/use.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

namespace mica::fit::rules {

/// llmfit's weights of the terms for a use, whose sum is 1, and its target for the speed.
struct LlmfitUse {
  std::string_view name;                // of the use
  double quality, speed, fit, context;  // weights
  double tokens_per_second;             // the target
};

/// Those of llmfit's source.
inline constexpr std::array<LlmfitUse, 4> llmfit_uses = {{
    {"general", 0.45, 0.30, 0.15, 0.10, 40},
    {"coding", 0.50, 0.20, 0.15, 0.15, 40},
    {"chat", 0.40, 0.35, 0.15, 0.10, 40},
    {"reasoning", 0.55, 0.15, 0.15, 0.15, 25},
}};

/// The weights of a use.
[[nodiscard]] constexpr const LlmfitUse& llmfit_use(const Use& use) noexcept {
  for (const LlmfitUse& each : llmfit_uses) {
    if (each.name == use.name) return each;
  }
  return llmfit_uses.front();
}

/// The terms of a score and their weighted sum, each from 0 to 100.
struct Score {
  double quality = 0, speed = 0, fit = 0, context = 0;  // 0 to 100 each, before they are weighted
  double total = 0;                                     // rounded to a tenth
};

/// Points for the weights that a token uses, less the penalty of the quantisation; 0 to 100.
[[nodiscard]] inline double quality_score(double active_parameters, double penalty) noexcept {
  struct Step {
    double below, points;
  };
  constexpr std::array<Step, 6> steps = {
      {{1e9, 30}, {3e9, 45}, {7e9, 60}, {10e9, 75}, {20e9, 82}, {40e9, 89}}};
  double points = 95;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    if (active_parameters < step->below) points = step->points;
  }
  return std::clamp(points - penalty, 0.0, 100.0);
}

/// Points for the used fraction of the fuller pool: 100 up to 0.7, falling to 1, 0 above it.
[[nodiscard]] inline double fit_score(double part) noexcept {
  if (part > 1) return 0;
  const double beyond = std::max(0.0, part - 0.7) / 0.2;
  return 100 * std::exp(-beyond * beyond / 2);
}

/// The score; all terms are 0 for a fit that is too tight.
[[nodiscard]] inline Score llmfit_score(const Fit& fit, const Use& use) noexcept {
  if (fit.level == Level::too_tight) return {};
  const LlmfitUse& weights = llmfit_use(use);
  Score score;
  score.quality = quality_score(fit.active, fit.penalty);
  score.speed = std::clamp(fit.decode / weights.tokens_per_second * 100, 0.0, 100.0);
  score.fit = fit_score(utilisation(fit.need, fit.available));
  score.context = fit.setting.n_ctx >= use.tokens ? 100 : fit.setting.n_ctx >= use.tokens / 2 ? 70 : 30;
  const double sum = score.quality * weights.quality + score.speed * weights.speed + score.fit * weights.fit +
                     score.context * weights.context;
  score.total = std::round(sum * 10) / 10;
  return score;
}

}  // namespace mica::fit::rules
