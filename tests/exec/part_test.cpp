// SPDX-License-Identifier: Apache-2.0

#include "mica/exec/detail/task_range.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace part_test {

using mica::exec::Range;
using mica::exec::detail::TaskRange;

TEST_CASE("a part is empty until something is given, and after all is taken") {
  TaskRange part;
  CHECK(part.take_front().empty());
  CHECK(part.take_back().empty());
  part.give({5, 6});
  CHECK(part.take_back() == Range{5, 6});
  CHECK(part.take_front().empty());
}

TEST_CASE("the owner takes from the front and others from the back, a sixteenth of what is left") {
  TaskRange part;
  part.give({100, 132});
  CHECK(part.take_front() == Range{100, 102});
  CHECK(part.take_back() == Range{131, 132});
  CHECK(part.take_front() == Range{102, 103});
  part.give({0, 15});
  CHECK(part.take_front() == Range{0, 1});
}

TEST_CASE("a part reaches to the largest bound that a word holds") {
  TaskRange part;
  part.give({0xfffffff0, 0xffffffff});
  CHECK(part.take_back() == Range{0xfffffffe, 0xffffffff});
  CHECK(part.take_front() == Range{0xfffffff0, 0xfffffff1});
}

TEST_CASE("pieces taken at both ends at the same time cover the part once") {
  TaskRange part;
  for (int round = 0; round < 200; ++round) {
    std::vector<int> taken(1000, 0);
    const auto take_all = [&](bool front) {
      for (;;) {
        const Range piece = front ? part.take_front() : part.take_back();
        if (piece.empty()) return;
        for (std::size_t i = piece.begin; i < piece.end; ++i) ++taken[i];
      }
    };
    part.give({0, taken.size()});
    std::thread other(take_all, false);
    take_all(true);
    other.join();
    REQUIRE(taken == std::vector<int>(1000, 1));
  }
}

}  // namespace part_test
