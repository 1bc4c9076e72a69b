// SPDX-License-Identifier: Apache-2.0

#include "mica/exec/detail/worker_thread.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <thread>

#if defined(__linux__)

#include <sched.h>

namespace manners_test {

using mica::exec::detail::core_now;
using mica::exec::detail::leave_core;
using mica::exec::detail::YieldPolicy;

namespace {

cpu_set_t mask_now() {
  cpu_set_t mask;
  REQUIRE(sched_getaffinity(0, sizeof mask, &mask) == 0);
  return mask;
}

// Runs f on a thread of its own, whose mask may be spoilt.
template <class F>
void on_a_thread(F&& f) {
  std::thread thread(f);
  thread.join();
}

// Whether `leave` takes the thread off its core; the system may put it back at any time, so a few attempts count.
template <class F>
bool leaves(F&& leave) {
  for (int attempt = 0; attempt < 50; ++attempt) {
    const int before = core_now();
    leave(before);
    if (core_now() != before) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

}  // namespace

TEST_CASE("a thread that leaves a core is on another one, with the mask it had") {
  on_a_thread([] {
    const cpu_set_t before = mask_now();
    if (CPU_COUNT(&before) >= 2) CHECK(leaves([](int core) { leave_core(core, 2); }));
    const cpu_set_t after = mask_now();
    CHECK(CPU_EQUAL(&before, &after));
  });
}

TEST_CASE("nobody leaves the only core there is") {
  on_a_thread([] {
    const int core = core_now();
    REQUIRE(core >= 0);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(core), &one);
    REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
    leave_core(core, 1);
    leave_core(core, 2);
    leave_core(-1, 1);
    const cpu_set_t after = mask_now();
    CHECK(CPU_EQUAL(&one, &after));
    CHECK(core_now() == core);
  });
}

TEST_CASE("a worker on the caller's core moves away, and one elsewhere does not care") {
  on_a_thread([] {
    const cpu_set_t before = mask_now();
    if (CPU_COUNT(&before) < 2) return;
    CHECK(leaves([](int core) { YieldPolicy(2).before_run(core); }));
    YieldPolicy many(static_cast<std::size_t>(CPU_COUNT(&before)) + 1);
    many.before_run(core_now());  // more workers than cores: two of them share one
    many.before_run(-1);
    const cpu_set_t after = mask_now();
    CHECK(CPU_EQUAL(&before, &after));
  });
}

}  // namespace manners_test

#endif
