// SPDX-License-Identifier: Apache-2.0
//
// The time of a generation in its two phases, prefill and decode, and its drafts.
#pragma once

#include <chrono>
#include <cstddef>

namespace mica {

/// Tokens and time of one phase.
struct Phase {
  std::size_t tokens = 0;  // that were fed, or sampled
  double seconds = 0;      // of wall time

  /// 0 where no time has passed.
  [[nodiscard]] double tokens_per_second() const noexcept {
    return seconds > 0 ? static_cast<double>(tokens) / seconds : 0.0;
  }
};

/// Tokens and time of one generation.
struct Timings {
  Phase prompt;     // tokens fed before the first answer
  Phase predicted;  // tokens sampled
};

/// The number of drafts (runtime/drafter.hpp).
struct DraftCounts {
  std::size_t drafted = 0;   // that steps have checked
  std::size_t accepted = 0;  // of those
};

/// Seconds since it was made.
class Stopwatch {
 public:
  /// Of a clock that never goes back.
  [[nodiscard]] double seconds() const noexcept {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace mica
