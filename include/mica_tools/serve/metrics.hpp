// SPDX-License-Identifier: Apache-2.0
//
// The numbers that a server counts since its start. Histograms have fixed bounds, as Prometheus wants them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace mica::serve {

/// Counts of times, by upper bounds in seconds.
struct Histogram {
  /// Seconds, ascending.
  static constexpr std::array<double, 14> bounds = {0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5,
                                                    1,     2,    5,    10,   30,  60,  300};

  std::array<std::uint64_t, bounds.size() + 1> counts = {};  // the last one: above all bounds
  double sum = 0;                                            // seconds

  /// Counts one time.
  void add(double seconds) noexcept {
    std::size_t i = 0;
    while (i < bounds.size() && seconds > bounds[i]) ++i;
    ++counts[i];
    sum += seconds;
  }
};

/// Totals since the start.
struct Metrics {
  std::uint64_t requests = 0;        // jobs that were accepted
  std::uint64_t refused_busy = 0;    // other jobs: the queue was full
  std::uint64_t refused_size = 0;    // other jobs: too long or too large
  std::uint64_t finished = 0;        // answers that ended by themselves
  std::uint64_t cancelled = 0;       // answers whose client disconnected
  std::uint64_t failed = 0;          // answers that the server could not finish
  std::uint64_t prompt_tokens = 0;   // of all prompts
  std::uint64_t cached_tokens = 0;   // of them, not computed
  std::uint64_t answer_tokens = 0;   // that were sampled
  std::uint64_t embedded_texts = 0;  // that became rows
  std::uint64_t steps = 0;           // of models
  double prompt_seconds = 0;         // sum over answers of the time of reading
  double answer_seconds = 0;         // sum over answers of the time of writing
  std::uint64_t loads = 0;           // of models
  std::uint64_t unloads = 0;         // of models
  std::uint64_t sheds = 0;           // others took the memory: answers were ended and all models unloaded
  Histogram first_token = {};        // seconds from submit to the first token
  Histogram between_tokens = {};     // seconds between two tokens of an answer
  Histogram queued = {};             // seconds in the queue
};

}  // namespace mica::serve
