// SPDX-License-Identifier: Apache-2.0
//
// The number of drafts. A step with k drafts takes longer than one without, depending on machine, format and
// k, and the part of accepted drafts depends on the text; so both are measured during an answer.
//
//   k        that of the most tokens per second: (1 + r + r^2 + ... + r^k) / price(k), where r is the part of
//            accepted drafts of late
//   credit   in plain steps: an accepted draft adds one, the price is subtracted, a step without drafts adds
//            a hundredth. Below zero nothing is drafted. It begins with three quarters of a step, so that a
//            few wrong drafts do not end the drafting of a text that is easy to guess: a text that cannot be
//            guessed costs about 1 % and one or two steps. After a hundred steps without, drafts are tried.
//
// The time of a step is the recent minimum: a first step waits for memory, and other processes make any step
// longer, never shorter. So that a price is never that of a context long gone, one step in 32 is without
// drafts, and so are the first two.
#pragma once

#include "mica/runtime/drafter.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace mica {

/// Chooses the number of drafts. It affects speed and nothing else.
class DraftPace {
 public:
  static constexpr std::size_t plain_steps = 2;  // the first ones
  static constexpr double stake = 0.75;
  static constexpr double earned_by_a_step = 0.01;
  static constexpr std::size_t longest_run = 31;  // of steps with drafts
  static constexpr double richest = 2;  // so that drafting stops soon when a text stops repeating itself
  static constexpr double poorest = -1;

  /// Drafts for the next step, at most `max`.
  [[nodiscard]] std::size_t choose(std::size_t max) const noexcept {
    if (account_ < 0 || run_ == longest_run || plain_ < plain_steps) return 0;
    std::size_t best = 0;
    double best_speed = 0, tokens = 1, right = 1;
    for (std::size_t k = 1; k <= std::min(max, draft_limit); ++k) {
      right *= right_ / (right_ + wrong_);
      tokens += right;
      if (tokens / price(k) <= best_speed) continue;
      best_speed = tokens / price(k);
      best = k;
    }
    return best;
  }

  /// Records the time of a step. accepted <= drafted <= draft_limit.
  void count(std::size_t drafted, std::size_t accepted, double seconds) noexcept {
    double& min = seconds_[drafted];
    min = min == 0 || seconds < min ? seconds : min + (seconds - min) / 16;
    if (drafted == 0) {
      account_ += earned_by_a_step;
      run_ = 0;
      ++plain_;
    } else {
      ++run_;
      account_ += static_cast<double>(accepted) - (price(drafted) - 1);
      right_ = 0.9 * right_ + static_cast<double>(accepted);
      wrong_ = 0.9 * wrong_ + (accepted < drafted ? 1 : 0);
    }
    account_ = std::clamp(account_, poorest, richest);
  }

 private:
  /// Of a step with k drafts, in steps without. A price that was never measured is assumed to be low, so that
  /// it is measured.
  [[nodiscard]] double price(std::size_t k) const noexcept {
    if (seconds_[0] == 0 || seconds_[k] == 0) return 1 + static_cast<double>(k) / 16;
    return std::max(1.0, seconds_[k] / seconds_[0]);
  }

  std::array<double, draft_limit + 1> seconds_ = {};  // by drafts; 0: never
  std::size_t run_ = 0;                               // steps with drafts since one without
  std::size_t plain_ = 0;                             // steps without drafts, in all
  double account_ = stake;
  double right_ = 2;  // recent drafts; optimistic at first
  double wrong_ = 1;
};

}  // namespace mica
