// SPDX-License-Identifier: Apache-2.0

#include "mica/alloc/budgeted.hpp"

#include "alloc_models.hpp"
#include "mica/alloc/buffer.hpp"
#include "mica/alloc/huge.hpp"

#include <doctest/doctest.h>

#include <cstddef>

namespace budgeted_test {

using mica::alloc::Aligned;
using mica::alloc::Budgeted;
using mica::alloc::Buffer;
using mica::budget::Account;
using mica::budget::Ledger;

TEST_CASE("a budgeted allocator books what a buffer holds, for as long as it holds it") {
  Ledger ledger(1024);
  const Budgeted<Aligned> allocator(ledger, Account::kv);
  {
    auto buffer = Buffer<float, Budgeted<Aligned>>::make(allocator, 256);
    REQUIRE(buffer);
    CHECK(ledger.used(Account::kv) == 1024);
    CHECK_FALSE(Buffer<char, Budgeted<Aligned>>::make(allocator, 1));
  }
  CHECK(ledger.used() == 0);
  CHECK(ledger.peak() == 1024);
}

TEST_CASE("nothing is asked of the allocator below when the ledger refuses") {
  Ledger ledger(100);
  mica::test::Diary diary;
  Budgeted<mica::test::Noting> allocator(ledger, Account::weights, mica::test::Noting(diary));
  CHECK(allocator.allocate(101, 64) == nullptr);
  CHECK(diary.asked == 0);
}

TEST_CASE("a refusal below gives the booking back") {
  Ledger ledger(100);
  Budgeted<mica::test::Refusing> allocator(ledger, Account::weights);
  CHECK(allocator.allocate(50, 64) == nullptr);
  CHECK(ledger.used() == 0);
}

TEST_CASE("one budgeted allocator serves several accounts of one ledger") {
  Ledger ledger(1000);
  const Budgeted<mica::alloc::Huge> weights(ledger, Account::weights);
  const auto kv = weights.book_as(Account::kv);
  auto a = Buffer<char, Budgeted<mica::alloc::Huge>>::make(weights, 300);
  auto b = Buffer<char, Budgeted<mica::alloc::Huge>>::make(kv, 200);
  REQUIRE(a);
  REQUIRE(b);
  CHECK(ledger.used(Account::weights) == 300);
  CHECK(ledger.used(Account::kv) == 200);
}

TEST_CASE("an allocator that books nothing is its own answer for every account") {
  Aligned heap = Aligned{}.book_as(Account::kv);
  std::byte* const block = heap.allocate(10, 16);
  REQUIRE(block != nullptr);
  heap.deallocate(block, 10);
}

}  // namespace budgeted_test
