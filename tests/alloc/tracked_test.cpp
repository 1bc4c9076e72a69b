// SPDX-License-Identifier: Apache-2.0

#include "mica/alloc/tracked.hpp"

#include "alloc_models.hpp"
#include "mica/alloc/budgeted.hpp"
#include "mica/alloc/buffer.hpp"

#include <doctest/doctest.h>

#include <cstddef>

namespace tracked_test {

using mica::alloc::Aligned;
using mica::alloc::Buffer;
using mica::alloc::Statistics;
using mica::alloc::Tracked;

TEST_CASE("statistics follow blocks as they come and go") {
  Statistics statistics;
  const Tracked<Aligned> allocator(statistics);
  auto a = Buffer<char, Tracked<Aligned>>::make(allocator, 100);
  auto b = Buffer<char, Tracked<Aligned>>::make(allocator, 50);
  CHECK(statistics.current_bytes() == 150);
  CHECK(statistics.blocks() == 2);
  a.reset();
  CHECK(statistics.current_bytes() == 50);
  CHECK(statistics.blocks() == 1);
  auto c = Buffer<char, Tracked<Aligned>>::make(allocator, 20);
  CHECK(statistics.peak_bytes() == 150);
  CHECK(statistics.allocations() == 3);
  CHECK(statistics.refusals() == 0);
}

TEST_CASE("a refused request is counted as such and as nothing else") {
  Statistics statistics;
  Tracked<mica::test::Refusing> allocator(statistics);
  CHECK(allocator.allocate(10, 8) == nullptr);
  CHECK(statistics.refusals() == 1);
  CHECK(statistics.allocations() == 0);
  CHECK(statistics.current_bytes() == 0);
}

TEST_CASE("decorators nest, and the account reaches the one that books") {
  mica::budget::Ledger ledger(1000);
  Statistics statistics;
  using Inner = mica::alloc::Budgeted<Aligned>;
  const Tracked<Inner> kv(statistics, Inner(ledger, mica::budget::Account::kv));
  const auto logits = kv.book_as(mica::budget::Account::logits);
  auto buffer = Buffer<float, Tracked<Inner>>::make(logits, 10);
  REQUIRE(buffer);
  CHECK(ledger.used(mica::budget::Account::logits) == 40);
  CHECK(statistics.current_bytes() == 40);
}

}  // namespace tracked_test
