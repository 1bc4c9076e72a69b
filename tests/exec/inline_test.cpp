// SPDX-License-Identifier: Apache-2.0

#include "mica/exec/inline.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

TEST_CASE("inline runs its tasks in order on worker 0") {
  mica::exec::Inline executor;
  REQUIRE(executor.workers() == 1);
  std::vector<std::size_t> order;
  executor.run(5, [&](std::size_t task, std::size_t worker) {
    order.push_back(task);
    CHECK(worker == 0);
  });
  CHECK(order == std::vector<std::size_t>{0, 1, 2, 3, 4});
}

TEST_CASE("inline runs no task when there is none") {
  mica::exec::Inline executor;
  bool called = false;
  executor.run(0, [&](std::size_t, std::size_t) { called = true; });
  CHECK_FALSE(called);
}
