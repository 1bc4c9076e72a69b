// SPDX-License-Identifier: Apache-2.0
//
// Signs of life on a terminal, for what takes longer than 300 ms: one line of stderr that goes away again.
#pragma once

#include "options.hpp"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace mica::program {

/// Whether progress is shown at all: stderr is a terminal and the program is neither quiet nor asked for
/// JSON.
[[nodiscard]] bool shows_progress(const Options& options);

/// A line that is rewritten as a loop goes on; nothing in the first 300 ms, and at most ten times a second
/// after.
class Progress {
 public:
  explicit Progress(const Options& options) : shown_(shows_progress(options)) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { clear(); }

  void update(const std::string& text);
  void clear();

 private:
  std::chrono::steady_clock::time_point next_ =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
  bool shown_;
  bool dirty_ = false;
};

/// A line that appears when a piece of work that reports nothing takes longer than 300 ms, with the seconds
/// it took.
class Waiting {
 public:
  Waiting(const Options& options, std::string text);
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  ~Waiting();

 private:
  void watch();

  Progress progress_;
  std::string text_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace mica::program
