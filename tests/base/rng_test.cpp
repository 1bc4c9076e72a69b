// SPDX-License-Identifier: Apache-2.0

#include "mica/base/rng.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstdlib>
#include <set>

namespace mica::test::rng_test {

TEST_CASE("the n-th number of a seed is the same for everybody who asks") {
  CounterRng a(42), b(42), later(42, 5);
  for (int i = 0; i < 5; ++i) CHECK(a.next() == b.next());
  CHECK(a.counter() == 5);
  CHECK(a.next() == later.next());
  CHECK(a.seed() == 42);
  static_assert(CounterRng(7).next() == CounterRng(7).next());
}

TEST_CASE("neighbouring seeds and counters give numbers of their own") {
  std::set<std::uint64_t> seen;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    CounterRng rng(seed);
    for (int i = 0; i < 100; ++i) seen.insert(rng.next());
  }
  CHECK(seen.size() == 10000);
}

TEST_CASE("uniform numbers are below one, and as many in each tenth as chance allows") {
  CounterRng rng(1);
  std::array<int, 10> tenths{};
  constexpr int n = 100000;
  for (int i = 0; i < n; ++i) {
    const double x = rng.uniform();
    REQUIRE(x >= 0);
    REQUIRE(x < 1);
    ++tenths[static_cast<std::size_t>(x * 10)];
  }
  for (const int count : tenths) CHECK(std::abs(count - n / 10) < 500);  // five standard deviations
}

}  // namespace mica::test::rng_test
