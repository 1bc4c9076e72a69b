// SPDX-License-Identifier: Apache-2.0
//
// What a worker's thread does beside tasks: it takes no asynchronous signals (Ctrl-C, window size, timers),
// it spins for a few microseconds without slowing the other thread of its core, and it yields its core to
// other processes.
#pragma once

#include <chrono>
#include <csignal>
#include <cstddef>
#include <initializer_list>
#include <thread>
#include <pthread.h>

#if defined(__linux__)
#include <sched.h>
#endif
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace mica::exec::detail {

/// Blocks the calling thread's asynchronous signals until the scope ends. Signals of faulting instructions
/// are not blocked: the process would end without a call of its handler.
class SignalsBlocked {
 public:
  SignalsBlocked() noexcept {
    sigset_t blocked;
    sigfillset(&blocked);
    for (const int signal : {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGPROF}) {
      sigdelset(&blocked, signal);
    }
    pthread_sigmask(SIG_SETMASK, &blocked, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

/// Tells the core that this is a spin loop: tens of cycles.
inline void relax() noexcept {
#if defined(__SSE2__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");  // "yield" returns at once on most cores
#endif
}

/// Spins until `ready()` or about 50 us have passed; true when ready.
template <class Ready>
[[nodiscard]] bool spin_until(Ready&& ready) noexcept {
  using Clock = std::chrono::steady_clock;
  constexpr auto patience = std::chrono::microseconds(50);
  constexpr int looks = 64;  // between two readings of the clock: about as expensive as 24 pauses

  Clock::time_point give_up{};
  for (;;) {
    for (int i = 0; i < looks; ++i) {
      if (ready()) return true;
      relax();
    }
    const Clock::time_point now = Clock::now();
    if (give_up == Clock::time_point{}) give_up = now + patience;
    if (now >= give_up) return false;
  }
}

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

/// When a worker yields its core. One that loses its core in the middle of a task delays the whole run by the
/// rest of another process's time slice: so it yields between runs, before the scheduler preempts it. It also
/// avoids the core of the caller, because no run begins without the caller. Not for the caller.
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
