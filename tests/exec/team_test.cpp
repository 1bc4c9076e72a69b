// SPDX-License-Identifier: Apache-2.0

#include "mica/exec/team.hpp"

#include "mica/base/error.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>
#include <vector>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace team_test {

using mica::exec::Team;

namespace {

// Runs `tasks` tasks that count themselves and note their worker; plain ints, so that a race is visible to tools.
void check_each_once(Team& team, std::size_t tasks) {
  std::vector<int> calls(tasks, 0);
  std::vector<std::size_t> worker_of(tasks, team.workers());
  team.run(tasks, [&](std::size_t task, std::size_t worker) {
    ++calls[task];
    worker_of[task] = worker;
  });
  for (std::size_t task = 0; task < tasks; ++task) {
    REQUIRE(calls[task] == 1);
    REQUIRE(worker_of[task] < team.workers());
  }
}

// Waits for others inside a task; false when they do not come for 20 s.
template <class Ready>
bool wait_for(Ready&& ready) {
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!ready()) {
    if (std::chrono::steady_clock::now() > patience) return false;
    std::this_thread::yield();
  }
  return true;
}

}  // namespace

TEST_CASE("a team runs each task exactly once") {
  for (std::size_t workers = 1; workers <= 4; ++workers) {
    Team team(workers);
    REQUIRE(team.workers() == workers);
    for (int round = 0; round < 100; ++round) {
      for (const std::size_t tasks : {0u, 1u, 2u, 7u, 1000u}) check_each_once(team, tasks);
    }
  }
}

TEST_CASE("what one run wrote, every worker of the next run reads") {
  Team team(4);
  constexpr std::size_t n = 64;
  std::vector<std::uint64_t> from(n, 0);
  std::vector<std::uint64_t> to(n, 0);
  for (std::uint64_t round = 1; round <= 3000; ++round) {
    team.run(n, [&](std::size_t task, std::size_t) { to[task] = from[(task + 17) % n] + 1; });
    from.swap(to);
    REQUIRE(from[round % n] == round);
  }
}

TEST_CASE("no two tasks of one worker run at a time") {
  Team team(3);
  std::atomic<int> inside[3] = {};
  std::atomic<int> clashes{0};
  for (int round = 0; round < 150; ++round) {
    team.run(100, [&](std::size_t, std::size_t worker) {
      if (inside[worker].fetch_add(1) != 0) clashes.fetch_add(1);
      inside[worker].fetch_sub(1);
    });
  }
  CHECK(clashes.load() == 0);
}

TEST_CASE("each worker begins at the front of its own part") {
  Team team(3);
  std::vector<std::size_t> worker_of(10, 99);
  std::atomic<int> begun{0};
  std::atomic<bool> came{true};
  team.run(10, [&](std::size_t task, std::size_t worker) {
    worker_of[task] = worker;
    if (task != 0 && task != 4 && task != 7) return;
    begun.fetch_add(1);
    if (!wait_for([&] { return begun.load() == 3; })) came.store(false);
  });
  CHECK(came.load());
  CHECK(worker_of[0] == 0);
  CHECK(worker_of[4] == 1);
  CHECK(worker_of[7] == 2);
}

TEST_CASE("whoever is held up keeps one piece, and the others do all the rest") {
  Team team(2);
  for (const std::size_t held : {std::size_t{0}, std::size_t{32}}) {  // the caller, the other worker
    std::atomic<int> done{0};
    std::atomic<bool> others_came{true};
    team.run(64, [&](std::size_t task, std::size_t) {
      // At most a piece of two tasks is behind the one that waits.
      if (task == held && !wait_for([&] { return done.load() >= 62; })) others_came.store(false);
      done.fetch_add(1);
    });
    CHECK(others_came.load());
    CHECK(done.load() == 64);
  }
}

TEST_CASE("a worker that comes late to a run takes part in the next one, with the right work") {
  // Runs so short that most end before the other workers have looked.
  Team team(4);
  std::vector<std::uint64_t> calls(3, 0);
  std::vector<std::uint64_t> wrong(4, 0);
  for (std::uint64_t round = 1; round <= 20000; ++round) {
    const std::size_t tasks = 2 + round % 2;
    team.run(tasks, [&calls, &wrong, tasks](std::size_t task, std::size_t worker) {
      task < tasks ? ++calls[task] : ++wrong[worker];
    });
  }
  CHECK(calls == std::vector<std::uint64_t>{20000, 20000, 10000});
  CHECK(wrong == std::vector<std::uint64_t>(4, 0));
}

TEST_CASE("a team that slept between runs wakes up") {
  Team team(3);
  for (int round = 0; round < 5; ++round) {
    std::atomic<int> begun{0};
    std::atomic<bool> came{true};
    team.run(3, [&](std::size_t, std::size_t) {
      begun.fetch_add(1);
      if (!wait_for([&] { return begun.load() == 3; })) came.store(false);
    });
    CHECK(came.load());
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // long after the spinning ended
  }
}

TEST_CASE("a caller that waits long for a slow task sleeps and is woken") {
  Team team(2);
  std::atomic<bool> begun{false};
  bool slow_done = false;
  team.run(2, [&](std::size_t task, std::size_t) {
    if (task == 0) {
      static_cast<void>(wait_for([&] { return begun.load(); }));
      return;
    }
    begun.store(true);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    slow_done = true;
  });
  CHECK(slow_done);
}

TEST_CASE("the number of workers has limits that the error names") {
  CHECK_THROWS_WITH_AS(Team(0), "threads: found 0, allowed 1 to 1024", mica::Error);
  CHECK_THROWS_WITH_AS(Team(1025), "threads: found 1025, allowed 1 to 1024", mica::Error);
}

TEST_CASE("threads of a team leave the program's signals alone") {
  sigset_t before;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  Team team(2);
  sigset_t after;
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  CHECK(sigismember(&after, SIGINT) == sigismember(&before, SIGINT));

  int blocked[2] = {-1, -1};
  int open[2] = {-1, -1};
  std::atomic<int> begun{0};
  team.run(2, [&](std::size_t, std::size_t worker) {
    begun.fetch_add(1);
    if (!wait_for([&] { return begun.load() == 2; })) return;  // one task on each worker
    sigset_t mine;
    pthread_sigmask(SIG_SETMASK, nullptr, &mine);
    blocked[worker] = sigismember(&mine, SIGINT);
    open[worker] = sigismember(&mine, SIGBUS);
  });
  CHECK(blocked[0] == 0);
  CHECK(blocked[1] == 1);
  CHECK(open[1] == 0);
}

#if defined(__linux__)

namespace {

struct Said {
  std::string text;
  static void write(void* context, mica::LogLevel, std::string_view message) {
    static_cast<Said*>(context)->text = message;
  }
};

// In a child whose threads the system refuses: 0 when a team of four works on with one and says so. Root has no
// RLIMIT_NPROC, so the child gives up root first.
int team_without_threads() {
  if (getuid() == 0 && setuid(65534) != 0) return 2;
  const rlimit none{0, 0};
  if (setrlimit(RLIMIT_NPROC, &none) != 0) return 2;
  Said said;
  Team team(4, {&Said::write, &said});
  std::size_t sum = 0;
  team.run(10, [&](std::size_t task, std::size_t) { sum += task; });
  const bool warned = said.text.find("thread 2 of 4") != std::string::npos;
  return team.workers() == 1 && sum == 45 && warned ? 0 : 1;
}

}  // namespace

TEST_CASE("a team goes on with fewer workers when the system refuses threads") {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) _exit(team_without_threads());
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

#endif

}  // namespace team_test
