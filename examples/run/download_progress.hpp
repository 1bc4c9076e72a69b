// SPDX-License-Identifier: Apache-2.0
//
// The progress of a download: that of progress.hpp, or objects of JSON on stdout.
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
#include <utility>

namespace mica::program {

class DownloadProgress {
 public:
  /// events: JSON, a line of stdout for each percent.
  DownloadProgress(const OutputOptions& options, std::uint64_t all, bool events)
      : options_(options), all_(std::max<std::uint64_t>(all, 1)), events_(events), line_(options) {}

  /// done: bytes, those of earlier runs included, which the first call has.
  void update(std::uint64_t done) {
    if (!first_) {
      first_ = last_ = done;
      if (done != 0)
        note(options_,
             join("mica: continues after ", budget::size_text(done), " of ", budget::size_text(all_)));
    }
    if (done == last_) return;
    last_ = done;
    if (events_) return event(done);
    line_.update({.what = "downloading",
                  .done = done,
                  .all = all_,
                  .unit = WorkUnit::bytes,
                  .more = join(budget::size_text(done), " of ", budget::size_text(all_)),
                  .before = *first_});
  }
  void clear() { line_.clear(); }

 private:
  /// One for each percent.
  void event(std::uint64_t done) {
    const auto percent = static_cast<int>(100.0 * static_cast<double>(done) / static_cast<double>(all_));
    if (percent == std::exchange(last_percent_, percent) && done != all_) return;
    const double rate = static_cast<double>(done - *first_) / std::max(watch_.seconds(), 1e-3);
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
  int last_percent_ = 0;
};

}  // namespace mica::program
