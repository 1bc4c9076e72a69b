// SPDX-License-Identifier: Apache-2.0

#include "mica/exec/partition.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>

namespace partition_test {

using mica::exec::partition;
using mica::exec::Range;

static_assert(partition(10, 1, 3, 0) == Range{0, 4});
static_assert(partition(10, 1, 3, 1) == Range{4, 7});
static_assert(partition(10, 1, 3, 2) == Range{7, 10});
static_assert(partition(40, 16, 2, 0) == Range{0, 32});
static_assert(partition(40, 16, 2, 1) == Range{32, 40});
static_assert(partition(0, 16, 4, 3).empty());

TEST_CASE("the parts of a partition follow each other, cover everything and begin on granules") {
  for (const std::size_t n : {0u, 1u, 7u, 16u, 17u, 100u, 1000u}) {
    for (const std::size_t granularity : {1u, 3u, 16u, 64u}) {
      for (const std::size_t parts : {1u, 2u, 3u, 7u, 64u}) {
        CAPTURE(n);
        CAPTURE(granularity);
        CAPTURE(parts);
        std::size_t reached = 0;
        for (std::size_t i = 0; i < parts; ++i) {
          const Range part = partition(n, granularity, parts, i);
          REQUIRE(part.begin == reached);
          REQUIRE(part.end >= part.begin);
          REQUIRE((part.empty() || part.begin % granularity == 0));
          reached = part.end;
        }
        CHECK(reached == n);
      }
    }
  }
}

TEST_CASE("no part is more than one granule larger than another") {
  std::size_t min = SIZE_MAX;
  std::size_t max = 0;
  for (std::size_t i = 0; i < 7; ++i) {
    const std::size_t size = partition(16 * 100, 16, 7, i).size();
    min = size < min ? size : min;
    max = size > max ? size : max;
  }
  CHECK(max - min == 16);
}

TEST_CASE("the largest count does not wrap") {
  const Range last = partition(SIZE_MAX, 4096, 3, 2);
  CHECK(last.end == SIZE_MAX);
  CHECK(last.begin == partition(SIZE_MAX, 4096, 3, 1).end);
}

}  // namespace partition_test
