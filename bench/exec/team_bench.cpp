// SPDX-License-Identifier: Apache-2.0
//
// What a team of threads costs and keeps: an empty run; how much faster n workers are than one; and the part
// of that speed that is left while other processes are busy on the same cores. The tasks are like those of a
// step, about 3 us each: arithmetic in registers, as prefill is bound by it, or reading memory, as decode is.
//
//   team_bench [workers] [milliseconds of one figure]
#include "mica/exec/team.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using Clock = std::chrono::steady_clock;
using mica::exec::Team;

std::atomic<std::uint64_t> sink{0};  // where results go that nobody reads

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Processes that never sleep, for the length of a scope.
class OtherProcesses {
 public:
  explicit OtherProcesses(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      const pid_t child = ::fork();
      if (child == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) sink.fetch_add(1, std::memory_order_relaxed);
      }
      children_.push_back(child);
    }
    if (count > 0) ::usleep(50000);
  }
  ~OtherProcesses() {
    for (const pid_t child : children_) {
      ::kill(child, SIGKILL);
      ::waitpid(child, nullptr, 0);
    }
  }
  OtherProcesses(const OtherProcesses&) = delete;
  OtherProcesses& operator=(const OtherProcesses&) = delete;

 private:
  std::vector<pid_t> children_;
};

constexpr std::size_t slice = 9216;  // 8-byte words: 72 KiB, 64 rows of 2048 weights of 4.5 bits
std::vector<std::uint64_t> memory(slice * 8192, 1);  // 576 MiB

/// About 3 us of dependent multiplications.
void compute(std::size_t task) noexcept {
  std::uint64_t x = task | 1;
  for (int i = 0; i < 3000; ++i) x = x * 6364136223846793005U + 1442695040888963407U;
  if (x == 0) sink.store(x);
}

/// 72 KiB from memory.
void stream(std::size_t task) noexcept {
  const std::uint64_t* const p = memory.data() + task % 8192 * slice;
  std::uint64_t sum[8] = {};
  for (std::size_t i = 0; i < slice; i += 8) {
    __builtin_prefetch(p + i + 1024);
    for (std::size_t lane = 0; lane < 8; ++lane) sum[lane] += p[i + lane];
  }
  for (const std::uint64_t s : sum)
    if (s == 0) sink.store(s);
}

template <auto Task>
double tasks_per_second(Team& team, std::size_t tasks, double seconds) {
  std::size_t done = 0;
  const Clock::time_point start = Clock::now();
  do {
    team.run(tasks, [done](std::size_t task, std::size_t) noexcept { Task(done + task); });
    done += tasks;
  } while (seconds_since(start) < seconds);
  return static_cast<double>(done) / seconds_since(start);
}

template <auto Task>
void measure(const char* name, Team& one, Team& team, double seconds) {
  for (const std::size_t tasks : {16u, 64u, 256u, 2048u}) {
    std::vector<double> best(4, 0);
    for (int round = 0; round < 3; ++round) {
      best[0] = std::max(best[0], tasks_per_second<Task>(one, tasks, seconds / 4));
      best[1] = std::max(best[1], tasks_per_second<Task>(team, tasks, seconds / 4));
    }
    for (const std::size_t count : {1u, 2u}) {
      const OtherProcesses neighbours(count);
      best[1 + count] = tasks_per_second<Task>(team, tasks, seconds);
    }
    std::printf("%-8s %5zu tasks: %7.1f us, %5.2f x one worker, beside one %4.2f, beside two %4.2f\n", name,
                tasks, 1e6 * static_cast<double>(tasks) / best[1], best[1] / best[0], best[2] / best[1],
                best[3] / best[1]);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t workers = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 2;
  const double seconds = (argc > 2 ? std::strtod(argv[2], nullptr) : 1000) / 1000;
  Team one(1);
  Team team(workers);
  double min = 1e9;
  for (int round = 0; round < 20; ++round) {
    constexpr int runs = 5000;
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < runs; ++i) team.run(workers, [](std::size_t, std::size_t) noexcept {});
    min = std::min(min, seconds_since(start) / runs);
  }
  std::printf("empty run: %.0f ns\n", min * 1e9);
  measure<&compute>("compute", one, team, seconds);
  measure<&stream>("read", one, team, seconds);
}
