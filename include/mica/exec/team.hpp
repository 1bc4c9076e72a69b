// SPDX-License-Identifier: Apache-2.0
//
// A fixed team of threads. The caller of run() is worker 0; the others spin for about 50 us after each run,
// since the next one usually comes sooner, and then sleep.
//
// Each worker begins with a contiguous range of tasks, the same in every run of as many tasks, and takes
// tasks from its front in small pieces; then it takes tasks from the back of the others' ranges:
//
//   range of worker 0      range of worker 1
//   |#####>       <###|    |##########>    |      > taken by its owner, < by an idle worker
//
// While every worker has a core, workers do not compete. A worker that lost its core to another process
// delays one piece only, and workers yield cores early (detail/worker_thread.hpp). Only the time depends on
// which worker did what.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/base/log.hpp"
#include "mica/exec/concept.hpp"
#include "mica/exec/detail/denormals.hpp"
#include "mica/exec/detail/task_range.hpp"
#include "mica/exec/detail/worker_thread.hpp"
#include "mica/exec/partition.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

namespace mica::exec {

/// A team of threads that lives as long as the object. One run at a time, from any one thread; no run inside
/// a run. Its threads inherit the affinity mask of the constructing thread, are not pinned, and take no
/// asynchronous signals.
class Team {
 public:
  static constexpr std::size_t max_workers = 1024;  // the caller of run() included

  /// Starts workers - 1 threads, or fewer with a warning. Raises unless workers is 1 to max_workers.
  explicit Team(std::size_t workers, LogSink log = {}) {
    MICA_CHECK(workers >= 1 && workers <= max_workers, usage, "threads: found ", workers, ", allowed 1 to ",
               max_workers);
    ranges_ = std::vector<detail::TaskRange>(workers);
    start_threads(workers - 1, log);
  }
  ~Team() {
    announce(stop);
    for (std::thread& thread : threads_) thread.join();
  }
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  // Required by Executor
  [[nodiscard]] std::size_t workers() const noexcept { return workers_; }
  template <class F>
  void run(std::size_t tasks, F&& f) noexcept {
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
        share({work, context}, tasks);
      }
    }
    running_.store(false, std::memory_order_relaxed);
  }

 private:
  using Work = void (*)(void* f, Range tasks, std::size_t worker) noexcept;

  /// The work; written by the caller between runs, read by workers inside them.
  struct Job {
    Work work = nullptr;
    void* f = nullptr;
  };

  static constexpr std::uint32_t stop = 1;  // lowest bit of a round; the counter is above it
  static constexpr std::size_t max_tasks = std::numeric_limits<std::uint32_t>::max();

  void start_threads(std::size_t wanted, LogSink log) {
    // Threads inherit the mask: the program's own thread handles Ctrl-C.
    const detail::SignalsBlocked blocked;
    threads_.reserve(wanted);
    try {
      while (threads_.size() < wanted) {
        const std::size_t worker = threads_.size() + 1;
        threads_.emplace_back([this, worker] { serve(worker); });
      }
    } catch (const std::exception& error) {  // of the system, or no memory: those that run must be joined
      log_refusal(wanted, error.what(), log);
    }
    workers_ = threads_.size() + 1;
  }
  void log_refusal(std::size_t wanted, const char* why, LogSink log) const noexcept try {
    log(LogLevel::warning, join("threads: the system refused thread ", threads_.size() + 2, " of ",
                                wanted + 1, " (", why, "); going on with ", threads_.size() + 1));
  } catch (...) {  // no memory for a text
  }
  void serve(std::size_t worker) noexcept {
    const FlushDenormals flush;
    std::uint32_t seen = 0;
    detail::YieldPolicy yield_policy(ranges_.size());
    while (((seen = await_round(seen)) & stop) == 0) {
      yield_policy.before_run(caller_core_.load(std::memory_order_relaxed));
      finish(take_part(worker));
    }
  }
  [[nodiscard]] std::uint32_t await_round(std::uint32_t seen) noexcept {
    std::uint32_t round = seen;
    const auto arrived = [&] { return (round = round_.load(std::memory_order_acquire)) != seen; };
    if (detail::spin_until(arrived)) return round;
    // Sequentially consistent on both sides: announce() sees the sleeper, or the sleeper the new round.
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    while ((round = round_.load(std::memory_order_seq_cst)) == seen) {
      round_.wait(seen, std::memory_order_seq_cst);
    }
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
    return round;
  }
  void announce(std::uint32_t last) noexcept {
    round_.store((round_.load(std::memory_order_relaxed) + stop + 1) | last, std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) != 0) round_.notify_all();
  }

  void share(const Job& job, std::size_t tasks) noexcept {
    MICA_ASSERT(tasks <= max_tasks);
    job_ = job;
    caller_core_.store(detail::core_now(), std::memory_order_relaxed);
    unfinished_.store(static_cast<std::uint32_t>(tasks), std::memory_order_relaxed);
    for (std::size_t worker = 0; worker < workers_; ++worker) {
      ranges_[worker].give(partition(tasks, 1, workers_, worker));
    }
    announce(0);
    finish(take_part(0));
    await_finish();
  }
  /// The number of tasks done. A late worker finds no task, or takes tasks of the current run: no run ends
  /// before the tasks that were taken in it are done, so job_ belongs to it.
  [[nodiscard]] std::uint32_t take_part(std::size_t worker) noexcept {
    std::size_t done = 0;
    for (Range range; !(range = ranges_[worker].take_front()).empty(); done += range.size()) {
      job_.work(job_.f, range, worker);
    }
    for (std::size_t i = 1; i < workers_; ++i) {
      detail::TaskRange& other = ranges_[(worker + i) % workers_];
      for (Range range; !(range = other.take_back()).empty(); done += range.size()) {
        job_.work(job_.f, range, worker);
      }
    }
    return static_cast<std::uint32_t>(done);
  }
  void finish(std::uint32_t done) noexcept {
    if (done == 0) return;
    const std::uint32_t before = unfinished_.fetch_sub(done, std::memory_order_seq_cst);
    if (before == done && caller_sleeps_.load(std::memory_order_seq_cst)) unfinished_.notify_all();
  }
  void await_finish() noexcept {
    const auto finished = [&] { return unfinished_.load(std::memory_order_acquire) == 0; };
    if (detail::spin_until(finished)) return;
    caller_sleeps_.store(true, std::memory_order_seq_cst);
    std::uint32_t left = 0;
    while ((left = unfinished_.load(std::memory_order_seq_cst)) != 0) {
      unfinished_.wait(left, std::memory_order_seq_cst);
    }
    caller_sleeps_.store(false, std::memory_order_relaxed);
  }

  // Set by the caller, read by all workers.
  alignas(128) std::atomic<std::uint32_t> round_{0};
  std::atomic<int> caller_core_{-1};
  Job job_;
  std::vector<detail::TaskRange> ranges_;  // of each worker

  // Written by all workers, each on its own cache lines.
  alignas(128) std::atomic<std::uint32_t> unfinished_{0};  // tasks
  std::atomic<bool> caller_sleeps_{false};
  alignas(128) std::atomic<std::uint32_t> sleepers_{0};

  // Used by the caller only.
  alignas(128) std::size_t workers_ = 1;
  std::atomic<bool> running_{false};
  std::vector<std::thread> threads_;
};

static_assert(Executor<Team>);

}  // namespace mica::exec
