// SPDX-License-Identifier: Apache-2.0

#include "mica/ranks/division.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

namespace mica::test::division_test {

using ranks::Division;
using ranks::Part;

TEST_CASE("one rank has everything") {
  const Division alone;
  CHECK(alone.size() == 1);
  CHECK(alone.own(7) == Part{0, 7, 7});
  CHECK(alone.own(7).whole());
  CHECK(ranks::outputs(alone, 48) == Part{0, 48, 48});
}

TEST_CASE("parts follow each other, and have all units, as many as shares say") {
  const std::vector<double> shares = {3, 2, 3};
  const Division second(shares, 1);
  CHECK(second.rank() == 1);
  CHECK(second.own(8) == Part{3, 2, 8});
  CHECK(second.own(8).times(16) == Part{48, 32, 128});
  for (const std::size_t n : {0, 1, 2, 3, 7, 8, 100, 151'936}) {
    std::size_t end = 0;
    for (std::size_t r = 0; r < shares.size(); ++r) {
      const Part part = second.part(n, r);
      CHECK(part.first == end);
      CHECK(part.all == n);
      CHECK(std::fabs(static_cast<double>(part.count) - shares[r] / 8 * static_cast<double>(n)) <= 1);
      end = part.end();
    }
    CHECK(end == n);
  }
}

TEST_CASE("a rank may have no unit") {
  const std::vector<double> equal(5, 1.0);
  std::size_t without = 0;
  for (std::size_t r = 0; r < 5; ++r) without += Division(equal, r).own(2).count == 0 ? 1U : 0U;
  CHECK(without == 3);
  CHECK(Division({1, 1000}, 0).own(8).count == 0);
}

TEST_CASE("outputs are divided in panels of 16 where they have some") {
  const Division first({1, 1}, 0);
  CHECK(ranks::outputs(first, 48) == Part{0, 32, 48});
  CHECK(ranks::outputs(first, 50) == Part{0, 25, 50});
}

TEST_CASE("shares that are none, and a rank that is none, are refused") {
  CHECK_THROWS_WITH_AS(Division({1, 1}, 2), "rank 2 of 2 ranks", const Error&);
  CHECK_THROWS_WITH_AS(Division({1, 0}, 1), "shares of ranks: found 0.000000, allowed are positive numbers",
                       const Error&);
  CHECK_THROWS_AS(Division({1, -1}, 0), const Error&);
  CHECK_THROWS_AS(Division({1, std::numeric_limits<double>::infinity()}, 0), const Error&);
  CHECK_THROWS_AS(Division({std::nan(""), 1}, 0), const Error&);
  CHECK_THROWS_AS(Division({}, 0), const Error&);
}

}  // namespace mica::test::division_test
