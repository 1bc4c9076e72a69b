// SPDX-License-Identifier: Apache-2.0
//
// Samples against the growth that they show.

#include "mica/budget/growth.hpp"

#include <doctest/doctest.h>

#include <chrono>

namespace mica::test::growth_test {
namespace {

using namespace std::chrono_literals;
const budget::Growth::Clock::time_point start{};

}  // namespace

TEST_CASE("growth is that of a window, and its maximum fades") {
  budget::Growth growth(100ms, 10s);
  CHECK(growth.recent() == 0);
  growth.add(start, 1000);
  CHECK(growth.recent() == 0);  // nothing to compare with
  growth.add(start + 50ms, 1040);
  CHECK(growth.recent() == 40);
  growth.add(start + 90ms, 1020);
  growth.add(start + 95ms, 1030);
  CHECK(growth.recent() == 30);  // since the minimum
  growth.add(start + 260ms, 1035);
  CHECK(growth.recent() == 5);  // older samples do not count, but for the one before this one
  CHECK(growth.peak() == 39);   // 40 that faded a little
  growth.add(start + 10260ms, 1035);
  CHECK(growth.recent() == 0);
  CHECK(growth.peak() == 19);
  growth.add(start + 10270ms, 5000);
  CHECK(growth.peak() == 3965);
  growth.restart();
  growth.add(start + 10280ms, 9000);
  CHECK(growth.recent() == 0);
  CHECK(growth.peak() == 0);
}

TEST_CASE("steady growth is found however often it is sampled") {
  for (const auto pause : {1ms, 8ms, 50ms, 100ms}) {
    budget::Growth growth(100ms, 10s);
    auto at = start;
    for (std::uint64_t bytes = 0; at < start + 2s; at += pause)
      growth.add(at, bytes += static_cast<std::uint64_t>(pause.count()) * 1000);
    CHECK(growth.recent() <= 100'000);
    CHECK(growth.recent() >= (pause == 1ms ? 60'000 : 90'000));
  }
}

}  // namespace mica::test::growth_test
