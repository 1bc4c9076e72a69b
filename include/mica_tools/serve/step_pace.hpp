// SPDX-License-Identifier: Apache-2.0
//
// How many tokens of prompts share a step with answers in decode: as many as make the step, by measured time, about
// a multiple of one without them, and never fewer than min_tokens. The number changes no bit of any answer.
#pragma once

#include <algorithm>
#include <cstddef>

namespace mica::serve {

/// Averages of the last steps. One thread.
class StepPace {
 public:
  /// max_stall: the multiple, above 1.
  explicit StepPace(double max_stall) noexcept : max_stall_(max_stall) {}

  /// The time of a step with this number of writers and of tokens of prompts.
  void count(std::size_t writers, std::size_t prompt_tokens, double seconds) noexcept {
    if (writers == 0) return;
    if (prompt_tokens == 0) {
      average(quiet_, seconds);
    } else if (quiet_ > 0) {
      average(token_, std::max(seconds - quiet_, 0.0) / static_cast<double>(prompt_tokens));
    }
  }
  /// For the next step with writers; at least min_tokens.
  [[nodiscard]] std::size_t prompt_tokens(std::size_t max) const noexcept {
    if (quiet_ <= 0 || token_ <= 0) return std::min(first_tokens, max);
    const double tokens = (max_stall_ - 1) * quiet_ / token_;
    return std::clamp(static_cast<std::size_t>(std::min(tokens, 1e6)), std::min(min_tokens, max), max);
  }

 private:
  static constexpr std::size_t first_tokens = 16;  // before anything was measured
  static constexpr std::size_t min_tokens = 4;     // a prompt always advances
  static constexpr double weight = 0.2;            // of the newest step: five steps are remembered

  static void average(double& value, double newest) noexcept {
    value = value == 0 ? newest : value + weight * (newest - value);
  }

  double max_stall_;
  double quiet_ = 0;  // seconds
  double token_ = 0;  // seconds that a token of a prompt adds
};

}  // namespace mica::serve
