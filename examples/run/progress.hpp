// SPDX-License-Identifier: Apache-2.0
//
// Progress of work that takes longer than 300 ms: one line of stderr on a terminal, which is removed at the
// end.
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

/// Whether progress is shown at all: stderr is a terminal, and there is neither --quiet nor JSON.
[[nodiscard]] bool shows_progress(const OutputOptions& options);

/// A line that is rewritten while a loop runs; nothing in the first 300 ms, and at most ten times a second
/// after. Text that is wider than the terminal is cut.
class Progress {
 public:
  explicit Progress(const OutputOptions& options) : shown_(shows_progress(options)) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { clear(); }

  void update(std::string_view text);
  /// A bar, and the remaining time; `more` follows it.
  void update(std::string_view what, std::uint64_t done, std::uint64_t all, std::string_view more = {});
  /// A function that adds finished work and shows it; it throws a Stop after an interrupt.
  [[nodiscard]] std::function<void(std::uint64_t)> counter(std::string what, std::uint64_t all);
  void clear();

 private:
  [[nodiscard]] bool is_due() const { return shown_ && std::chrono::steady_clock::now() >= next_; }

  std::chrono::steady_clock::time_point next_ =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
  Stopwatch watch_;
  bool shown_;
  bool dirty_ = false;
};

/// A line that appears when a piece of work that does not report by itself takes longer than 300 ms, drawn by
/// a thread.
class Waiting {
 public:
  /// text(seconds) is called by that thread. The options outlive the line.
  Waiting(const OutputOptions& options, std::function<std::string(double)> text);
  /// The text and the seconds so far.
  Waiting(const OutputOptions& options, std::string text)
      : Waiting(options, [text = std::move(text)](double seconds) {
          return join(text, " ... ", static_cast<std::uint64_t>(seconds), " s");
        }) {}
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  ~Waiting();

 private:
  void watch();

  Progress progress_;
  std::function<std::string(double)> text_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::thread thread_;  // last: it uses the others
};

/// The line while a prompt is read.
class ReadingLine {
 public:
  ReadingLine(const OutputOptions& options, std::size_t tokens)
      : reading_{tokens, 0, 0}, line_(options, [this](double seconds) { return text(seconds); }) {}

  /// `tokens` of the prompt are read; returns whether some are left.
  bool read(std::size_t tokens) {
    const std::lock_guard lock(mutex_);
    if (tokens > reading_.done) reading_ = {reading_.all, tokens, watch_.seconds()};
    return tokens < reading_.all;
  }

 private:
  [[nodiscard]] std::string text(double seconds) {
    const std::lock_guard lock(mutex_);
    return reading_text(reading_, seconds);
  }

  Reading reading_;
  std::mutex mutex_;
  Stopwatch watch_;
  Waiting line_;  // last: it uses the others
};

}  // namespace mica::program
