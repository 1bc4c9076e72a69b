// SPDX-License-Identifier: Apache-2.0

#include "mica/exec/observed.hpp"

#include "mica/exec/inline.hpp"
#include "mica/exec/team.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <cstddef>

namespace mica::test::observed_test {
namespace {

TEST_CASE("skipping leaves out the tasks that are left of a run, and later runs") {
  exec::Inline inner;
  exec::Observed executor(inner);
  std::size_t done = 0;
  const auto work = [&](std::size_t task, std::size_t) {
    ++done;
    if (task == 3) executor.skip(true);
  };
  executor.run(10, work);
  CHECK(done == 4);
  executor.run(10, work);
  CHECK(done == 4);
  executor.skip(false);
  executor.run(3, work);
  CHECK(done == 7);
}

TEST_CASE("a team ends a run early, whichever worker asks for it") {
  exec::Team team(2);
  exec::Observed executor(team);
  constexpr std::size_t tasks = 100'000;
  std::atomic<std::size_t> done{0};
  executor.run(tasks, [&](std::size_t, std::size_t) {
    if (done.fetch_add(1) == 100) executor.skip(true);
  });
  CHECK(done.load() > 100);
  CHECK(done.load() < tasks);
}

}  // namespace
}  // namespace mica::test::observed_test
