// SPDX-License-Identifier: Apache-2.0
//
// A fixed team of threads. The caller of run() is worker 0; the others spin for about 50 us after each run, since the
// next one usually comes sooner, and then sleep.
//
// Two ways to share tasks, chosen by measurement:
//   fixed    each worker has its contiguous part; nobody competes for anything
//   claimed  about six chunks per worker, claimed from a counter: when cores are oversubscribed a worker that does not
//            get its core takes no chunk, and nobody waits for it
// Which way was chosen shows in the time and nowhere else.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/base/log.hpp"
#include "mica/exec/concept.hpp"
#include "mica/exec/denormals.hpp"
#include "mica/exec/detail/pause.hpp"
#include "mica/exec/detail/signals.hpp"
#include "mica/exec/partition.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <system_error>
#include <thread>
#include <type_traits>
#include <vector>

namespace mica::exec {

/// How a team shares the tasks of a run.
enum class Sharing : std::uint8_t { measured, fixed, claimed };

/// A team of threads that lives as long as the object. One run at a time, from any one thread; no run inside a run.
/// Its threads inherit the affinity mask of the constructing thread, are not pinned, and take no asynchronous signals.
class Team {
 public:
  static constexpr std::size_t max_workers = 1024;

  /// Starts workers - 1 threads; fewer, with a warning, when the system refuses. 1 <= workers <= max_workers, else raises.
  explicit Team(std::size_t workers, LogSink log = {}, Sharing sharing = Sharing::measured);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  // Required by Executor
  [[nodiscard]] std::size_t workers() const noexcept { return workers_; }
  template <class F>
  void run(std::size_t tasks, F&& f) noexcept;

  // Specific to Team
  /// Whether runs hand out claimed chunks at present.
  [[nodiscard]] bool claims() const noexcept { return claiming_; }

 private:
  using Clock = std::chrono::steady_clock;
  using Work = void (*)(void* f, Range tasks, std::size_t worker) noexcept;

  /// What is to be done; written by the caller between runs, read by workers inside them.
  struct Job {
    Work work = nullptr;
    void* f = nullptr;
    std::size_t tasks = 0;
    std::size_t chunks = 0;  // claimed way only
  };

  // A round is a counter in the upper bits and its kind in the lowest two.
  static constexpr std::uint32_t kind_mask = 3;
  static constexpr std::uint32_t kind_fixed = 0;
  static constexpr std::uint32_t kind_claimed = 1;
  static constexpr std::uint32_t kind_stop = 2;

  static constexpr std::size_t chunks_per_worker = 6;
  static constexpr std::uint32_t window = 100;         // runs that decide
  static constexpr std::uint32_t claimed_runs = 2000;  // runs until the fixed way gets another chance

  explicit Team(Sharing sharing) noexcept : sharing_(sharing), claiming_(sharing == Sharing::claimed) {}
  void start_threads(std::size_t wanted, LogSink log);
  void serve(std::size_t worker) noexcept;
  [[nodiscard]] std::uint32_t await_round(std::uint32_t seen) noexcept;
  void announce(std::uint32_t kind) noexcept;

  void run_shared(const Job& job) noexcept;
  void work_fixed(std::size_t worker) noexcept;
  void work_claimed(std::size_t worker) noexcept;
  void finish_one() noexcept;
  void await_finish() noexcept;
  void judge(Clock::time_point start) noexcept;

  // Set by the caller, read by everybody.
  alignas(128) std::atomic<std::uint32_t> round_{0};
  std::atomic<bool> yielding_{false};
  Job job_;

  // Written by everybody, each on its own lines.
  alignas(128) std::atomic<std::uint32_t> unclaimed_{0};   // chunks nobody has taken
  alignas(128) std::atomic<std::uint32_t> unfinished_{0};  // parts or chunks not yet done
  std::atomic<Clock::rep> first_finish_{0};
  std::atomic<bool> caller_sleeps_{false};
  alignas(128) std::atomic<std::uint32_t> sleepers_{0};

  // The caller's own.
  alignas(128) std::size_t workers_ = 1;
  Sharing sharing_;
  bool claiming_;
  std::uint32_t runs_ = 0;       // in the present way of sharing
  std::uint32_t slow_runs_ = 0;  // of those, the ones whose workers finished far apart
  std::atomic<bool> running_{false};
  std::vector<std::thread> threads_;
};

template <class F>
void Team::run(std::size_t tasks, F&& f) noexcept {
  using Function = std::remove_reference_t<F>;
  const Work work = [](void* context, Range range, std::size_t worker) noexcept {
    Function& function = *static_cast<Function*>(context);
    for (std::size_t task = range.begin; task < range.end; ++task) function(task, worker);
  };
  MICA_ASSERT(!running_.load(std::memory_order_relaxed));
  running_.store(true, std::memory_order_relaxed);
  {
    const FlushDenormals flush;
    void* const context = const_cast<void*>(static_cast<const volatile void*>(std::addressof(f)));
    if (workers_ == 1 || tasks <= 1) {
      work(context, {0, tasks}, 0);
    } else {
      run_shared({work, context, tasks, 0});
    }
  }
  running_.store(false, std::memory_order_relaxed);
}

inline Team::Team(std::size_t workers, LogSink log, Sharing sharing) : Team(sharing) {
  MICA_CHECK(workers >= 1 && workers <= max_workers, usage, "threads: found ", workers, ", allowed 1 to ",
             max_workers);
  yielding_.store(claiming_, std::memory_order_relaxed);
  start_threads(workers - 1, log);
}

inline Team::~Team() {
  announce(kind_stop);
  for (std::thread& thread : threads_) thread.join();
}

inline void Team::start_threads(std::size_t wanted, LogSink log) {
  const detail::SignalsBlocked blocked;  // threads inherit it: the program's own thread answers Ctrl-C
  threads_.reserve(wanted);
  try {
    while (threads_.size() < wanted) {
      const std::size_t worker = threads_.size() + 1;
      threads_.emplace_back([this, worker] { serve(worker); });
    }
  } catch (const std::system_error& error) {
    log(LogLevel::warning, join("threads: the system refused thread ", threads_.size() + 2, " of ",
                                wanted + 1, " (", error.what(), "); going on with ", threads_.size() + 1));
  }
  workers_ = threads_.size() + 1;
}

inline void Team::serve(std::size_t worker) noexcept {
  const FlushDenormals flush;
  std::uint32_t seen = 0;
  for (;;) {
    seen = await_round(seen);
    switch (seen & kind_mask) {
      case kind_fixed:
        work_fixed(worker);
        break;
      case kind_claimed:
        work_claimed(worker);
        break;
      default:
        return;
    }
  }
}

inline std::uint32_t Team::await_round(std::uint32_t seen) noexcept {
  std::uint32_t round = seen;
  const auto arrived = [&] { return (round = round_.load(std::memory_order_acquire)) != seen; };
  if (detail::spin_until(yielding_.load(std::memory_order_relaxed), arrived)) return round;
  // Sequentially consistent on both sides: either announce() sees the sleeper, or the sleeper sees the new round.
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  while ((round = round_.load(std::memory_order_seq_cst)) == seen) {
    round_.wait(seen, std::memory_order_seq_cst);
  }
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
  return round;
}

inline void Team::announce(std::uint32_t kind) noexcept {
  const std::uint32_t counter = (round_.load(std::memory_order_relaxed) & ~kind_mask) + kind_mask + 1;
  round_.store(counter | kind, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) != 0) round_.notify_all();
}

inline void Team::run_shared(const Job& job) noexcept {
  // Clocks are read where the way of sharing is open and the fixed one on trial.
  const bool judged = sharing_ == Sharing::measured && !claiming_;
  const Clock::time_point start = judged ? Clock::now() : Clock::time_point{};
  job_ = job;
  if (claiming_) {
    const std::size_t most = workers_ * chunks_per_worker;
    job_.chunks = job.tasks < most ? job.tasks : most;
    unfinished_.store(static_cast<std::uint32_t>(job_.chunks), std::memory_order_relaxed);
    unclaimed_.store(static_cast<std::uint32_t>(job_.chunks), std::memory_order_release);
    announce(kind_claimed);
    work_claimed(0);
  } else {
    unfinished_.store(static_cast<std::uint32_t>(workers_), std::memory_order_relaxed);
    announce(kind_fixed);
    work_fixed(0);
  }
  await_finish();
  if (sharing_ == Sharing::measured) judge(start);
}

inline void Team::work_fixed(std::size_t worker) noexcept {
  job_.work(job_.f, partition(job_.tasks, 1, workers_, worker), worker);
  if (unfinished_.load(std::memory_order_relaxed) == workers_) {
    first_finish_.store(Clock::now().time_since_epoch().count(), std::memory_order_relaxed);
  }
  finish_one();
}

/// A worker that comes late finds nothing to claim, or claims from the round that runs by then: a claim succeeds only
/// while its round cannot end, so what job_ says belongs to it.
inline void Team::work_claimed(std::size_t worker) noexcept {
  std::uint32_t left = unclaimed_.load(std::memory_order_relaxed);
  while (left != 0) {
    const bool claimed = unclaimed_.compare_exchange_weak(left, left - 1, std::memory_order_acquire,
                                                          std::memory_order_relaxed);
    if (!claimed) continue;
    job_.work(job_.f, partition(job_.tasks, 1, job_.chunks, job_.chunks - left), worker);
    finish_one();
    left = unclaimed_.load(std::memory_order_relaxed);
  }
}

inline void Team::finish_one() noexcept {
  const std::uint32_t before = unfinished_.fetch_sub(1, std::memory_order_seq_cst);
  if (before == 1 && caller_sleeps_.load(std::memory_order_seq_cst)) unfinished_.notify_all();
}

inline void Team::await_finish() noexcept {
  const auto finished = [&] { return unfinished_.load(std::memory_order_acquire) == 0; };
  if (detail::spin_until(yielding_.load(std::memory_order_relaxed), finished)) return;
  caller_sleeps_.store(true, std::memory_order_seq_cst);
  std::uint32_t left = 0;
  while ((left = unfinished_.load(std::memory_order_seq_cst)) != 0) {
    unfinished_.wait(left, std::memory_order_seq_cst);
  }
  caller_sleeps_.store(false, std::memory_order_relaxed);
}

/// The fixed way has failed when in most of `window` runs the first worker to finish waited more than 5 us for the last
/// (a barrier among running cores takes less than one) and more than a sixteenth of the run (else it is only unevenness).
inline void Team::judge(Clock::time_point start) noexcept {
  ++runs_;
  if (claiming_) {
    if (runs_ < claimed_runs) return;
    claiming_ = false;
  } else {
    const Clock::time_point now = Clock::now();
    const Clock::duration apart =
        now.time_since_epoch() - Clock::duration(first_finish_.load(std::memory_order_relaxed));
    if (apart > std::chrono::microseconds(5) && apart > (now - start) / 16) ++slow_runs_;
    if (runs_ < window) return;
    claiming_ = slow_runs_ > window / 2;
  }
  runs_ = 0;
  slow_runs_ = 0;
  yielding_.store(claiming_, std::memory_order_relaxed);
}
static_assert(Executor<Team>);

}  // namespace mica::exec
