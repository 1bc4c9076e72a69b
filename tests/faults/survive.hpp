// SPDX-License-Identifier: Apache-2.0
//
// A work is done again and again, and each time another call of the system fails: the first one, the second
// one, until a work passes in which none does.

#pragma once

#include "faults/faults.hpp"
#include "mica/base/error.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <new>
#include <string>
#include <string_view>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace mica::test::faults {

/// A piece of work that can be repeated.
struct Work {
  std::string_view name;
  std::function<void()> run;            // what fails; raises nothing but mica::Error and std::bad_alloc
  std::function<std::string()> result;  // what the last run made
  std::function<void()> inspect = {};   // checks what lies on the disk, whether or not the run failed
  std::string mentions = {};            // what the error of a file that fails has in its text
};

/// The number of the next call. All of them with MICA_TEST_FAULTS=all in the environment; else the first
/// forty, then a sample.
inline std::uint64_t next(std::uint64_t at) {
  static const bool all = [] {
    const char* const wanted = std::getenv("MICA_TEST_FAULTS");
    return wanted != nullptr && std::string_view(wanted) == "all";
  }();
  return at + (all || at < 40 ? 1 : at / 6);
}

/// How a run ended.
struct Ended {
  bool struck = false;  // a call has failed
  bool raised = false;
  std::string text;  // of the error
};

inline Ended run_with(const Fault& fault, const Work& work) {
  Ended ended;
  const Armed armed(fault);
  try {
    work.run();
    Armed::disarm();
  } catch (const Error& error) {
    Armed::disarm();
    ended = {false, true, error.message()};
  } catch (const std::bad_alloc& error) {
    Armed::disarm();
    ended = {false, true, error.what()};
  }
  ended.struck = Armed::struck();
  return ended;
}

/// Each call of the set fails, one in each run. A run gives the right result or, if it may, an error. It
/// loses no memory and no file, and the run after it gives the right result.
inline void survive(const Work& work, Fault fault, bool may_raise = true) {
  CAPTURE(work.name);
  CAPTURE(fault.calls);
  CAPTURE(fault.for_ever);
  CAPTURE(fault.error);
  for (int i = 0; i < 2; ++i) work.run();  // what is made once is made
  const std::string expected = work.result();
  std::uint64_t points = 0, errors = 0;
  for (fault.at = 1;; fault.at = next(fault.at)) {
    CAPTURE(fault.at);
    ::alarm(300);  // for this call
    const Held before = Held::now();
    const Ended ended = run_with(fault, work);
    CAPTURE(ended.text);
    if (!ended.raised) CHECK(work.result() == expected);
    if (work.inspect) work.inspect();
    if (!ended.struck) {
      CHECK_FALSE(ended.raised);
      break;
    }
    ++points;
    errors += ended.raised ? 1 : 0;
    CHECK((may_raise || !ended.raised));
    if (ended.raised && (fault.calls & memory) == 0)
      CHECK(ended.text.find(work.mentions) != std::string::npos);
    if (Held::now().more_than(before)) {  // the text of an error may be made once, too
      const Held once = Held::now();
      static_cast<void>(run_with(fault, work));
      CHECK_FALSE(Held::now().more_than(once));
    }
    work.run();
    CHECK(work.result() == expected);
  }
  CHECK(points > 0);
  std::printf("faults: %.*s, calls %#x, error %d, %s: %llu points, %llu errors\n",
              static_cast<int>(work.name.size()), work.name.data(), fault.calls, fault.error,
              fault.for_ever ? "for ever" : "once", static_cast<unsigned long long>(points),
              static_cast<unsigned long long>(errors));
}

/// The same, and the result is always the right one.
inline void survive_unseen(const Work& work, const Fault& fault) { survive(work, fault, false); }

/// A set of calls fails for ever, and the work gives its result: each of them has another way.
inline void do_without(const Work& work, Fault fault) {
  CAPTURE(work.name);
  CAPTURE(fault.calls);
  work.run();
  const std::string expected = work.result();
  fault.for_ever = true;
  const Ended ended = run_with(fault, work);
  CAPTURE(ended.text);
  CHECK(ended.struck);
  CHECK_FALSE(ended.raised);
  CHECK(work.result() == expected);
}

/// The process dies in each call that changes something on the disk, before it and inside of it. What is left
/// is inspected, and the next run gives the right result.
inline void survive_kills(const Work& work) {
  CAPTURE(work.name);
  work.run();
  const std::string expected = work.result();
  std::uint64_t points = 0;
  for (const Effect effect : {Effect::kill, Effect::kill_inside}) {
    for (std::uint64_t at = 1;; ++at) {
      CAPTURE(at);
      const ::pid_t child = ::fork();
      REQUIRE(child >= 0);
      if (child == 0) {
        static_cast<void>(run_with({.calls = changes, .at = at, .effect = effect}, work));
        std::_Exit(0);
      }
      int status = 0;
      REQUIRE(::waitpid(child, &status, 0) == child);
      if (work.inspect) work.inspect();
      if (WIFEXITED(status)) break;
      REQUIRE(WTERMSIG(status) == SIGKILL);
      ++points;
      if (at % 4 != 0) continue;  // deaths before a run that ends, too
      work.run();
      CHECK(work.result() == expected);
    }
    work.run();
    CHECK(work.result() == expected);
  }
  CHECK(points > 0);
  std::printf("faults: %.*s: killed at %llu points\n", static_cast<int>(work.name.size()), work.name.data(),
              static_cast<unsigned long long>(points));
}

}  // namespace mica::test::faults
