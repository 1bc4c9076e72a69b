// SPDX-License-Identifier: Apache-2.0
//
// The progress of a download: a bar with its rate on a terminal, a line for each tenth on a pipe, or objects of
// JSON on stdout.
#pragma once

#include "console.hpp"
#include "mica/budget/size.hpp"
#include "mica/runtime/stats.hpp"
#include "output_options.hpp"
#include "progress.hpp"
#include "progress_text.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

namespace mica::program {

class DownloadProgress {
 public:
  /// events: JSON, a line of stdout for each percent.
  DownloadProgress(const OutputOptions& options, std::uint64_t all, bool events)
      : options_(options),
        all_(std::max<std::uint64_t>(all, 1)),
        events_(events),
        line_(options, Progress::Elsewhere::nothing) {}

  /// done: bytes, those of earlier runs included, which the first call has.
  void update(std::uint64_t done) {
    if (!first_) {
      first_ = last_ = done;
      last_percent_ = percent(done);
      if (done != 0)
        note(options_,
             join("mica: continues after ", budget::size_text(done), " of ", budget::size_text(all_)));
    }
    if (done == last_) return;
    last_ = done;
    const double rate = static_cast<double>(done - *first_) / std::max(watch_.seconds(), 1e-3);
    if (events_) return event(done, rate);
    if (shows_progress(options_)) {
      // The remaining time is that of this run's rate.
      const double seconds = static_cast<double>(done) / rate;
      return line_.show(
          {.what = "downloading", .done = done, .all = all_, .at = seconds, .unit = WorkUnit::bytes},
          seconds);
    }
    if (percent(done) / 10 == last_percent_ / 10 || options_.json || options_.jsonl) return;
    last_percent_ = percent(done);
    note(options_, join("mica: ", last_percent_ / 10 * 10, " %: ", budget::size_text(done), " of ",
                        budget::size_text(all_), ", ", budget::size_text(static_cast<std::uint64_t>(rate)),
                        "/s, ", duration_text(static_cast<double>(all_ - done) / rate), " left"));
  }
  void clear() { line_.clear(); }

 private:
  [[nodiscard]] std::uint64_t percent(std::uint64_t done) const noexcept {
    return static_cast<std::uint64_t>(100.0 * static_cast<double>(done) / static_cast<double>(all_));
  }
  void event(std::uint64_t done, double rate) {
    if (percent(done) == last_percent_ && done != all_) return;
    last_percent_ = percent(done);
    print(join("{\"event\":\"progress\",\"bytes\":", done, ",\"of\":", all_,
               ",\"bytes_per_second\":", static_cast<std::uint64_t>(rate), "}\n"));
  }

  const OutputOptions& options_;
  std::uint64_t all_;
  bool events_;
  Progress line_;
  Stopwatch watch_;
  std::optional<std::uint64_t> first_;
  std::uint64_t last_ = 0;
  std::uint64_t last_percent_ = 0;
};

}  // namespace mica::program
