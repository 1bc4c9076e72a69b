// SPDX-License-Identifier: Apache-2.0
//
// How a worker behaves beside other processes. Losing the core in the middle of a piece of work makes
// everybody wait for the rest of another's time slice, so a worker gives its core away while it holds
// nothing, before it is taken; and it keeps off the core of the caller, without whom no run begins.
#pragma once

#include <chrono>
#include <cstddef>
#include <thread>

#if defined(__linux__)
#include <sched.h>
#endif

namespace mica::exec::detail {

/// The core that the calling thread is on at this moment; -1 where the system does not say.
[[nodiscard]] inline int core_now() noexcept {
#if defined(__linux__)
  return ::sched_getcpu();
#else
  return -1;
#endif
}

/// Moves the calling thread to another core of its affinity mask, which is as before afterwards; nothing
/// happens when the mask has fewer cores than `workers`. Tens of microseconds.
/// Limit: a mask that somebody else gives this thread meanwhile is lost. Linux only.
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

/// One worker's manners. Not for the caller of runs.
class Manners {
 public:
  explicit Manners(std::size_t workers) noexcept : workers_(workers) {}

  /// Call it before each run, while the worker holds no work: a look at the clock, and now and then a system
  /// call.
  void mind(int caller_core) noexcept {
    const Clock::time_point now = Clock::now();
    if (caller_core >= 0 && core_now() == caller_core && now >= next_move_) {
      leave_core(caller_core, workers_);
      next_move_ = Clock::now() + between_moves;
    }
    if (now < next_rest_) return;
    std::this_thread::yield();  // returns at once when nobody waits for the core
    next_rest_ = Clock::now() + between_rests;
  }

 private:
  using Clock = std::chrono::steady_clock;
  // Half of the 4 ms that a scheduler with 250 ticks per second grants: of 1, 2, 3 and 5 ms, 2 and 3 kept
  // most beside a neighbour (bench/exec/team_bench.cpp).
  static constexpr auto between_rests = std::chrono::milliseconds(2);
  static constexpr auto between_moves = std::chrono::microseconds(500);

  std::size_t workers_;
  Clock::time_point next_rest_{};
  Clock::time_point next_move_{};
};

}  // namespace mica::exec::detail
