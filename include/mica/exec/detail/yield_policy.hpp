// SPDX-License-Identifier: Apache-2.0
//
// When a worker yields its core to other processes. A worker that loses its core in the middle of a task
// delays the whole run by the rest of another process's time slice. So it yields between runs, before the
// scheduler preempts it. It also avoids the core of the caller, because no run begins without the caller.
#pragma once

#include <chrono>
#include <cstddef>
#include <thread>

#if defined(__linux__)
#include <sched.h>
#endif

namespace mica::exec::detail {

/// The core of the calling thread at this moment; -1 where the system does not report it.
[[nodiscard]] inline int core_now() noexcept {
#if defined(__linux__)
  return ::sched_getcpu();
#else
  return -1;
#endif
}

/// Moves the calling thread to another core of its affinity mask, and restores the mask; nothing happens when
/// the mask has fewer cores than `workers`. Tens of microseconds. Limit: a mask that another thread sets for
/// this one meanwhile is lost. Linux only.
inline void leave_core(int core, std::size_t workers) noexcept {
#if defined(__linux__)
  cpu_set_t mask;
  if (core < 0 || core >= CPU_SETSIZE || ::sched_getaffinity(0, sizeof mask, &mask) != 0) return;
  if (static_cast<std::size_t>(CPU_COUNT(&mask)) < workers) return;
  cpu_set_t others = mask;
  CPU_CLR(static_cast<std::size_t>(core), &others);
  if (CPU_COUNT(&others) == 0 || ::sched_setaffinity(0, sizeof others, &others) != 0) return;
  ::sched_setaffinity(0, sizeof mask, &mask);
#else
  static_cast<void>(core);
  static_cast<void>(workers);
#endif
}

/// The yield policy of one worker. Not for the caller of runs.
class YieldPolicy {
 public:
  explicit YieldPolicy(std::size_t workers) noexcept : workers_(workers) {}

  /// Call it before each run, while the worker has no work. Cost: a reading of the clock, sometimes a system
  /// call.
  void before_run(int caller_core) noexcept {
    const Clock::time_point now = Clock::now();
    if (caller_core >= 0 && core_now() == caller_core && now >= next_move_) {
      leave_core(caller_core, workers_);
      next_move_ = Clock::now() + between_moves;
    }
    if (now < next_rest_) return;
    std::this_thread::yield();  // returns at once when no thread waits for the core
    next_rest_ = Clock::now() + between_rests;
  }

 private:
  using Clock = std::chrono::steady_clock;
  // Half of the 4 ms that a scheduler with 250 ticks per second grants: of 1, 2, 3 and 5 ms, 2 and 3 kept
  // most speed beside another process (bench/exec/team_bench.cpp).
  static constexpr auto between_rests = std::chrono::milliseconds(2);
  static constexpr auto between_moves = std::chrono::microseconds(500);

  std::size_t workers_;
  Clock::time_point next_rest_{};
  Clock::time_point next_move_{};
};

}  // namespace mica::exec::detail
