// SPDX-License-Identifier: Apache-2.0
//
// Progress of work that takes longer than 300 ms: on a terminal one line of stderr, which is rewritten and
// removed at the end; elsewhere a line for each tenth of work that takes longer than three seconds. Neither
// with --quiet, --json or --jsonl.
#pragma once

#include "mica/runtime/stats.hpp"
#include "output_options.hpp"
#include "progress_text.hpp"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace mica::program {

/// Whether there is a line that is rewritten: stderr is a terminal, and there is neither --quiet nor JSON.
[[nodiscard]] bool shows_progress(const OutputOptions& options);

/// Progress of a loop. Nothing in the first 300 ms, and at most ten times a second after. The width of the
/// terminal is read each time.
class Progress {
 public:
  /// Lines that are not on a terminal: one for each tenth, or none because the verb writes its own.
  enum class Elsewhere : std::uint8_t { tenths, nothing };

  explicit Progress(const OutputOptions& options, Elsewhere elsewhere = Elsewhere::tenths);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { clear(); }

  /// The state of the work, whose `at` is set here.
  void update(WorkState work);
  /// The same, `at` as given; now: seconds from the beginning.
  void show(const WorkState& work, double now);
  /// A function that adds finished work and shows it; it throws a Stop after an interrupt.
  [[nodiscard]] std::function<void(std::uint64_t)> counter(std::string what, std::uint64_t all,
                                                           WorkUnit unit = WorkUnit::bytes);
  void clear();

 private:
  [[nodiscard]] bool is_due() const { return shown_ && std::chrono::steady_clock::now() >= next_; }

  const OutputOptions& options_;
  std::chrono::steady_clock::time_point next_ =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
  Stopwatch watch_;
  TenthLines tenths_;
  bool shown_;
  bool writes_tenths_;
  bool dirty_ = false;
};

/// The line of a piece of work that does not report by itself, drawn by a thread, on a terminal alone.
class Waiting {
 public:
  /// state(seconds) is called by that thread. The options outlive the line.
  Waiting(const OutputOptions& options, std::function<WorkState(double)> state);
  /// The text and the seconds so far.
  Waiting(const OutputOptions& options, std::string text)
      : Waiting(options, [text = std::move(text)](double) { return WorkState{.what = text}; }) {}
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  ~Waiting();

 private:
  void watch();

  Progress progress_;
  std::function<WorkState(double)> state_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::thread thread_;  // last: it uses the others
};

/// The line while a prompt is read.
class ReadingLine {
 public:
  ReadingLine(const OutputOptions& options, std::size_t tokens)
      : options_(options),
        reading_{.what = "reading the prompt", .all = tokens, .unit = WorkUnit::tokens},
        elsewhere_(options),
        line_(options, [this](double) {
          const std::lock_guard lock(mutex_);
          return reading_;
        }) {}

  /// `tokens` of the prompt are read; returns whether some are left.
  bool read(std::size_t tokens);

 private:
  const OutputOptions& options_;
  WorkState reading_;
  std::mutex mutex_;
  Stopwatch watch_;
  Progress elsewhere_;  // where there is no thread
  Waiting line_;        // last: it uses the others
};

}  // namespace mica::program
