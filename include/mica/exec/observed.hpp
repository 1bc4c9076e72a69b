// SPDX-License-Identifier: Apache-2.0
//
// An executor whose runs are observed, between two of them: by a pacer that rests, or by a measurement; and
// which another thread can empty, so that a step whose result is not needed ends soon.
#pragma once

#include "mica/exec/concept.hpp"
#include "mica/exec/inline.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <utility>

namespace mica::exec {

/// Observes the runs of an executor. Called by one thread at a time.
class RunObserver {
 public:
  using Clock = std::chrono::steady_clock;  // that is read before and after each run
  using Time = Clock::time_point;           // of this clock

  virtual ~RunObserver() = default;
  /// A run began and ended at these times. The thread that runs calls it; it may sleep, and workers do then.
  virtual void ran(Time begin, Time end) noexcept = 0;
};

/// Runs on E. Cost of each parallel run: two comparisons; with an observer, two clock readings; of each task
/// one load. Threads: as E.
template <Executor E>
class Observed {
 public:
  /// Both outlive it. observer: null for none.
  explicit Observed(E& executor, RunObserver* observer = nullptr) noexcept
      : executor_(&executor), observer_(observer) {}

  // Required by Executor
  [[nodiscard]] std::size_t workers() const noexcept { return executor_->workers(); }

  template <class F>
  void run(std::size_t tasks, F&& f) noexcept {
    if (skips_.load(std::memory_order_acquire)) return;
    const auto unless_skipped = [&](std::size_t task, std::size_t worker) noexcept {
      if (!skips_.load(std::memory_order_relaxed)) f(task, worker);
    };
    if (observer_ == nullptr) return executor_->run(tasks, unless_skipped);
    const auto begin = RunObserver::Clock::now();
    executor_->run(tasks, unless_skipped);
    observer_->ran(begin, RunObserver::Clock::now());
  }

  // Specific to Observed
  /// True: tasks do nothing from now on, also those that are left of a run, so that what they compute is
  /// missing. From any thread; who skips sees to it that the results are not used.
  void skip(bool skips) noexcept { skips_.store(skips, std::memory_order_release); }
  [[nodiscard]] bool skips() const noexcept { return skips_.load(std::memory_order_acquire); }

 private:
  E* executor_;
  RunObserver* observer_;
  std::atomic<bool> skips_{false};
};
static_assert(Executor<Observed<Inline>>);

}  // namespace mica::exec
