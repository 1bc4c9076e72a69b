// SPDX-License-Identifier: Apache-2.0
//
// An order of fits: llmfit's score of four parts, each from 0 to 100, weighted by the use of the model.
//
//   quality   30 45 60 75 82 89 95 for less than 1 3 7 10 20 40 billion weights that a token uses, or more;
//             less the penalty of the quantisation
//   speed     tokens a second / target * 100, at most 100
//   fit       100 up to 70 % of the fuller pool, then 100 * exp(-((part - 0.7) / 0.2)^2 / 2)
//   context   100 with the tokens of the use, 70 with half of them, else 30
//
// Limit: llmfit also adds points for names of makers, for generations, dates and benchmarks. Those are
// opinions that need upkeep; here a model is its size, and of two of one size the faster is first.
#pragma once

#include "mica_tools/fit/select.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

namespace mica::fit {

/// The use of a model.
struct Use {
  std::string_view name;                // of --use
  double quality, speed, fit, context;  // weights; together 1
  double tokens_per_second;             // the target of speed
  std::size_t tokens;                   // of context that it wants
};

/// Those that use_of() knows.
inline constexpr std::array<Use, 4> uses = {{
    {"general", 0.45, 0.30, 0.15, 0.10, 40, 4096},
    {"coding", 0.50, 0.20, 0.15, 0.15, 40, 8192},
    {"chat", 0.40, 0.35, 0.15, 0.10, 40, 4096},
    {"reasoning", 0.55, 0.15, 0.15, 0.15, 25, 8192},
}};

/// The use of that name. Raises a usage error that lists the known ones.
[[nodiscard]] inline const Use& use_of(std::string_view name) {
  std::string known;
  for (const Use& use : uses) {
    if (use.name == name) return use;
    known += join(known.empty() ? "" : " ", use.name);
  }
  raise(ErrorCode::usage, "--use: found \"", escaped(name), "\", allowed: ", known);
}

/// The parts of a score and their weighted sum, each from 0 to 100.
struct Score {
  double quality = 0, speed = 0, fit = 0, context = 0;  // by the rules above
  double total = 0;                                     // to a tenth
};

/// active_parameters: weights that a token uses. penalty: of the quantisation.
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

/// part: utilisation(); above 1 the score is 0.
[[nodiscard]] inline double fit_score(double part) noexcept {
  if (part > 1) return 0;
  const double beyond = std::max(0.0, part - 0.7) / 0.2;
  return 100 * std::exp(-beyond * beyond / 2);
}

/// All 0 where the model does not run.
[[nodiscard]] inline Score score_of(const Fit& fit, const Use& use) noexcept {
  if (fit.level == Level::too_tight) return {};
  Score score;
  score.quality = quality_score(fit.active, fit.penalty);
  score.speed = std::clamp(fit.decode / use.tokens_per_second * 100, 0.0, 100.0);
  score.fit = fit_score(utilisation(fit.need, fit.available));
  score.context = fit.setting.n_ctx >= use.tokens ? 100 : fit.setting.n_ctx >= use.tokens / 2 ? 70 : 30;
  const double sum = score.quality * use.quality + score.speed * use.speed + score.fit * use.fit +
                     score.context * use.context;
  score.total = std::round(sum * 10) / 10;
  return score;
}

/// A fit and its score.
struct Ranked {
  Fit fit;      // as the Selector chose it
  Score score;  // for the use
};

/// 0: in memory; 1: streamed from the disk; 2: does not run.
[[nodiscard]] constexpr int group_of(const Fit& fit) noexcept {
  return fit.level == Level::too_tight ? 2 : fit.mode == Mode::streamed ? 1 : 0;
}

/// Whether a comes before b: fits in memory, then streamed ones, then those that do not run. Among them by
/// score, level, speed and number of weights; those that do not run by the missing memory; then by name.
[[nodiscard]] inline bool before(const Ranked& a, const Ranked& b) noexcept {
  if (group_of(a.fit) != group_of(b.fit)) return group_of(a.fit) < group_of(b.fit);
  if (a.fit.level == Level::too_tight) {
    const double part_a = utilisation(a.fit.need, a.fit.available),
                 part_b = utilisation(b.fit.need, b.fit.available);
    return part_a != part_b ? part_a < part_b : a.fit.name < b.fit.name;
  }
  if (a.score.total != b.score.total) return a.score.total > b.score.total;
  if (a.fit.level != b.fit.level) return a.fit.level < b.fit.level;
  if (a.fit.decode != b.fit.decode) return a.fit.decode > b.fit.decode;
  if (a.fit.parameters != b.fit.parameters) return a.fit.parameters > b.fit.parameters;
  return a.fit.name < b.fit.name;
}

/// All fits in that order.
[[nodiscard]] inline std::vector<Ranked> ranked(std::vector<Fit> fits, const Use& use) {
  std::vector<Ranked> all;
  for (Fit& fit : fits) {
    const Score score = score_of(fit, use);
    all.push_back({std::move(fit), score});
  }
  std::sort(all.begin(), all.end(), before);
  return all;
}

}  // namespace mica::fit
