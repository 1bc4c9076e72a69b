// SPDX-License-Identifier: Apache-2.0
//
// Readings against decisions.

#include "mica/runtime/governor.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <vector>

namespace mica::test::governor_test {
namespace {

using namespace std::chrono_literals;
using budget::Pressure;

constexpr std::uint64_t mib = std::uint64_t{1} << 20;
const Governor::Time start{};

/// Of a gigabyte: pressed below 20 MiB, calm above 40.
Pressure left(std::uint64_t megabytes, double stalled = 0, std::uint64_t killed = 0) {
  return {"the machine", 1000 * mib, megabytes * mib, stalled, killed};
}

constexpr paging::WeightCapacity capacity(std::uint64_t resident) {
  return {100 * mib, resident * mib, 500 * mib, 503 * mib};
}

}  // namespace

TEST_CASE("what a governor decides") {
  struct Row {
    std::chrono::milliseconds at;
    Pressure pressure;
    std::uint64_t resident;   // MiB of weights
    Yield yield;              // afterwards
    std::uint64_t requested;  // MiB of weights; 0: nothing is said about them
  };
  const std::vector<Row> rows = {
      {0ms, left(500), 500, Yield::nothing, 0},
      {100ms, left(30), 500, Yield::nothing, 0},              // between the marks
      {200ms, left(30, 0.05), 500, Yield::nothing, 0},        // some wait, not long
      {300ms, left(30, 0.2), 500, Yield::caches, 0},          // long
      {400ms, left(19), 500, Yield::caches, 0},               // pressed, and too early for more
      {500ms, left(19), 500, Yield::chunk, 0},                //
      {600ms, left(500, 0.9), 500, Yield::chunk, 0},          // others wait; here there is enough
      {700ms, left(19), 500, Yield::cold, 0},                 //
      {900ms, left(19), 500, Yield::weights, 489},            // the middle of the marks is 11 away
      {1100ms, left(15), 489, Yield::weights, 474},           //
      {1300ms, left(2), 110, Yield::weights, 100},            // as little as works
      {1500ms, left(2), 100, Yield::weights, 0},              // nothing is left to give
      {1700ms, left(100), 100, Yield::weights, 0},            // calm begins
      {11600ms, left(100), 100, Yield::weights, 0},           // not long enough
      {11700ms, left(100), 100, Yield::weights, 130},         // half of what is above 40
      {12000ms, left(15), 130, Yield::weights, 115},          // too early: from now on 20 seconds
      {12500ms, left(900), 115, Yield::weights, 0},           //
      {31000ms, left(900), 115, Yield::weights, 0},           //
      {32500ms, left(900), 115, Yield::cold, 500},            // all of them
      {42500ms, left(900), 497, Yield::cold, 0},              // calm goes on, each step has its own
      {52500ms, left(900), 497, Yield::chunk, 0},             //
      {72500ms, left(900), 497, Yield::caches, 0},            //
      {80000ms, left(30), 497, Yield::caches, 0},             // not calm
      {92500ms, left(900), 497, Yield::caches, 0},            //
      {112500ms, left(900), 497, Yield::nothing, 0},          //
      {200000ms, left(9), 497, Yield::weights, 476},          // hardly anything left: all at once
      {210000ms, left(500, 0, 1), 476, Yield::weights, 466},  // somebody was killed
  };
  Governor governor(capacity(500));
  for (const Row& row : rows) {
    CAPTURE(row.at.count());
    const auto decision = governor.decide(row.pressure, capacity(row.resident), start + row.at);
    CHECK(governor.yield() == row.yield);
    CHECK((decision ? decision->weight_bytes / mib : 0) == row.requested);
    if (decision) CHECK(decision->to == row.yield);
  }
}

TEST_CASE("a model whose weights cannot go gives way in everything else, and no reading is no decision") {
  const paging::WeightCapacity none;
  Governor governor(none);
  for (int i = 0; i < 10; ++i) {
    const auto decision = governor.decide(left(1), none, start + i * 1s);
    CHECK(decision.has_value() == (i == 0));
    CHECK(governor.yield() == Yield::cold);
  }
  CHECK_FALSE(governor.decide(Pressure{}, none, start + 20s));
  Governor refused(capacity(500));
  const auto decision = refused.decide(left(1), capacity(500), start);
  REQUIRE(decision);
  refused.refuse({Yield::weights, Yield::cold, 5});
  CHECK(refused.yield() == Yield::weights);
}

TEST_CASE("what sessions will take soon counts as taken") {
  Governor alone(capacity(500)), beside(capacity(500));
  CHECK_FALSE(alone.decide(left(30), capacity(500), start));
  CHECK(beside.decide(left(30), capacity(500), start, 0, 11 * mib));
  CHECK_FALSE(Governor(capacity(500)).decide(left(30), capacity(500), start, 0, 10 * mib));
  const auto m = Governor::thresholds({}, left(30), 0, 11 * mib),
             without = Governor::thresholds({}, left(30), 0);
  CHECK(m.urgent == without.urgent);
  CHECK(m.low == without.low + 11 * mib);
  CHECK(m.high == without.high + 11 * mib);
}

TEST_CASE("sessions may grow by what is left when nothing else is") {
  constexpr std::uint64_t unlimited = Pressure::unlimited;
  Governor governor(capacity(500));
  CHECK(governor.growth_left(left(15), capacity(500), 0, 0) == unlimited);  // weights can leave
  CHECK(governor.growth_left(left(15), capacity(100), 0, 0) == unlimited);  // caches can
  for (int i = 0; i < 4; ++i) CHECK(governor.decide(left(15), capacity(500), start + i * 1s));
  CHECK(governor.growth_left(left(15), capacity(101), 0, 0) == unlimited);
  CHECK(governor.growth_left(left(15), capacity(100), 0, 0) == 5 * mib);  // 10 MiB stay for others
  CHECK(governor.growth_left(left(10), capacity(100), 0, 0) == 0);
  CHECK(governor.growth_left(left(3), capacity(100), 0, 0) == 0);
  CHECK(governor.growth_left(left(20), capacity(100), 0, 0) == unlimited);
  CHECK(governor.growth_left(left(20), capacity(100), 0, 1 * mib) == 10 * mib);
  CHECK(governor.growth_left(left(20), capacity(100), 1 * mib, 0) == 10 * mib);
}

TEST_CASE("the threshold below which memory is short can be a number of bytes") {
  constexpr std::uint64_t bytes = 500'000'000;
  const GovernorOptions options{.min_low = bytes, .max_low = bytes};
  const Pressure of_8_gib{"the machine", 8192 * mib, 501'000'000, 0, 0};
  const auto m = Governor::thresholds(options, of_8_gib, 0);
  CHECK(m.urgent == bytes / 2);
  CHECK(m.low == bytes);
  CHECK(m.high == 2 * bytes);
  Governor governor(capacity(500), options);
  CHECK_FALSE(governor.decide(of_8_gib, capacity(500), start));
  CHECK(governor.decide({"the machine", 8192 * mib, 499'000'000, 0, 0}, capacity(500), start + 1s));
}

TEST_CASE("the marks of a small limit and of a large one are bytes") {
  Governor small(capacity(500)), large(capacity(500));
  CHECK(small.decide({"", 100 * mib, 7 * mib, 0, 0}, capacity(500), start));
  CHECK_FALSE(small.decide({"", 100 * mib, 9 * mib, 0, 0}, capacity(500), start + 1s));
  CHECK_FALSE(large.decide({"", 1000'000 * mib, 513 * mib, 0, 0}, capacity(500), start));
  CHECK(large.decide({"", 1000'000 * mib, 511 * mib, 0, 0}, capacity(500), start));
}

}  // namespace mica::test::governor_test
