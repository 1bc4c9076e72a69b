// SPDX-License-Identifier: Apache-2.0

#include "mica/paging/detail/residency.hpp"

#include "mica/base/rng.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace mica::test::residency_test {
namespace {

using Bytes = std::vector<std::uint64_t>;
using paging::choose_residency, paging::Residency;

std::size_t staying(const Residency& r) {
  return static_cast<std::size_t>(std::count(r.stays.begin(), r.stays.end(), true));
}

/// The least that any choice within the budget reads.
std::uint64_t min_streamed(const Bytes& bytes, std::uint64_t budget) {
  std::uint64_t min = std::numeric_limits<std::uint64_t>::max();
  for (std::size_t mask = 0; mask < std::size_t{1} << bytes.size(); ++mask) {
    std::vector<bool> stays(bytes.size());
    for (std::size_t g = 0; g < bytes.size(); ++g) stays[g] = (mask >> g & 1) != 0;
    const Residency r = paging::detail::residency_of(bytes, stays);
    if (r.bytes() <= budget) min = std::min(min, r.streamed_bytes);
  }
  return min;
}

}  // namespace

TEST_CASE("all units stay where all fit, and then there is no ring") {
  const Residency r = choose_residency(Bytes{100, 200, 50}, 350);
  CHECK(staying(r) == 3);
  CHECK(r.streamed_bytes == 0);
  CHECK(r.ring_bytes == 0);
  CHECK(r.bytes() == 350);
}

TEST_CASE("units of one size: a ring for two, and what is left stays, evenly spread") {
  const Bytes bytes(16, 100);
  const Residency r = choose_residency(bytes, 650);
  CHECK(r.ring_bytes == 200);
  CHECK(staying(r) == 4);
  CHECK(r.streamed_bytes == 1200);
  for (std::size_t i = 0; i < 16; i += 4) {  // one in four, wherever one looks
    CHECK(std::count(r.stays.begin() + static_cast<std::ptrdiff_t>(i),
                     r.stays.begin() + static_cast<std::ptrdiff_t>(i + 4), true) == 1);
  }
}

TEST_CASE("a head that passes in slices needs a ring for two slices, and no more") {
  paging::UnitSizes sizes(Bytes{100, 100, 100, 1000});
  sizes.passing[3] = 90;
  CHECK(paging::detail::ring_for(sizes, {false, false, false, false}) == 200);
  CHECK(paging::detail::ring_for(sizes, {true, true, true, false}) == 180);
  CHECK(paging::detail::ring_for(sizes, {true, true, false, false}) == 190);
  CHECK(paging::detail::ring_for(sizes, {true, true, false, true}) == 100);
  CHECK(choose_residency(sizes, 0).ring_bytes == 100);
  const Residency r = choose_residency(sizes, 410);
  CHECK(staying(r) == 2);
  CHECK_FALSE(r.stays[3]);
}

TEST_CASE("a head that is larger than layers stays first, since it makes the ring large") {
  Bytes bytes(8, 100);
  bytes.push_back(430);
  const Residency r = choose_residency(bytes, 700);
  CHECK(r.stays[8]);
  CHECK(r.ring_bytes == 200);
  CHECK(r.streamed_bytes == 800);
}

TEST_CASE("without room for two the ring takes one, and without room for that it says what it needs") {
  const Bytes bytes = {100, 120, 90};
  for (const std::uint64_t budget : {std::uint64_t{0}, std::uint64_t{130}, std::uint64_t{209}}) {
    const Residency r = choose_residency(bytes, budget);
    CHECK(staying(r) == 0);
    CHECK(r.ring_bytes == 120);
  }
  CHECK(choose_residency(bytes, 220).ring_bytes == 220);
  CHECK(choose_residency(Bytes{}, 10).bytes() == 0);
}

TEST_CASE("no budget is exceeded, and units of one size are chosen as well as they can be") {
  CounterRng rng(3);
  for (int i = 0; i < 300; ++i) {
    Bytes bytes(1 + rng.next() % 9);
    const bool alike = rng.next() % 2 == 0;
    for (std::uint64_t& b : bytes) b = alike ? 100 : 1 + rng.next() % 200;
    const std::uint64_t all = std::accumulate(bytes.begin(), bytes.end(), std::uint64_t{0});
    const std::uint64_t budget = rng.next() % (all + 50);
    const Residency r = choose_residency(bytes, budget);
    const std::uint64_t min = min_streamed(bytes, budget);
    CAPTURE(budget);
    if (min == std::numeric_limits<std::uint64_t>::max()) {
      CHECK(r.ring_bytes == *std::max_element(bytes.begin(), bytes.end()));
      continue;
    }
    CHECK(r.bytes() <= budget);
    CHECK(r.streamed_bytes >= min);
    if (alike) CHECK(r.streamed_bytes == min);
  }
}

}  // namespace mica::test::residency_test
