// SPDX-License-Identifier: Apache-2.0

#include "mica/alloc/booking.hpp"

#include "mica/alloc/aligned.hpp"
#include "mica/alloc/budgeted.hpp"
#include "mica/alloc/counting.hpp"
#include "mica/alloc/tracked.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <utility>

namespace booking_test {

using mica::alloc::Aligned;
using mica::alloc::Booking;
using mica::alloc::Budgeted;
using mica::budget::Account;
using mica::budget::Ledger;

TEST_CASE("a booking holds bytes in the allocator's ledger until it dies") {
  Ledger ledger(100);
  {
    auto booking = Booking::make(Budgeted<Aligned>(ledger, Account::weights), Account::tokenizer, 60);
    REQUIRE(booking);
    CHECK(ledger.used(Account::tokenizer) == 60);
    CHECK_FALSE(Booking::make(mica::alloc::Counting(ledger, Account::kv), Account::kv, 41));
    CHECK(ledger.used() == 60);
  }
  CHECK(ledger.used() == 0);
}

TEST_CASE("a booking finds the ledger below other decorators") {
  Ledger ledger(100);
  mica::alloc::Statistics statistics;
  using Inner = Budgeted<Aligned>;
  const mica::alloc::Tracked<Inner> tracked(statistics, Inner(ledger, Account::weights));
  const auto booking = Booking::make(tracked, Account::io_buffers, 10);
  REQUIRE(booking);
  CHECK(ledger.used(Account::io_buffers) == 10);
}

TEST_CASE("with an allocator that keeps no books a booking always succeeds") {
  const auto booking = Booking::make(Aligned{}, Account::kv, UINT64_MAX);
  REQUIRE(booking);
  CHECK(booking->bytes() == UINT64_MAX);
}

TEST_CASE("a booking grows where the ledger grants it, and shrinks always") {
  Ledger ledger(100);
  auto booking = Booking::make(Budgeted<Aligned>(ledger, Account::kv), Account::kv, 0);
  REQUIRE(booking);
  CHECK(booking->resize(60));
  CHECK(booking->resize(100));
  CHECK_FALSE(booking->resize(101));
  CHECK(booking->bytes() == 100);
  CHECK(booking->resize(10));
  CHECK(ledger.used(Account::kv) == 10);
  CHECK(ledger.peak() == 100);
}

TEST_CASE("a moved booking releases once") {
  Ledger ledger(100);
  const Budgeted<Aligned> allocator(ledger, Account::kv);
  auto a = Booking::make(allocator, Account::kv, 30);
  auto b = Booking::make(allocator, Account::state, 20);
  REQUIRE(a);
  REQUIRE(b);
  Booking c(std::move(*a));
  a.reset();
  CHECK(ledger.used() == 50);
  c = std::move(*b);
  b.reset();
  CHECK(ledger.used(Account::state) == 20);
  CHECK(ledger.used(Account::kv) == 0);
}

}  // namespace booking_test
