// SPDX-License-Identifier: Apache-2.0

#include "mica/alloc/counting.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>

namespace counting_test {

using mica::alloc::Counting;
using mica::budget::Account;
using mica::budget::Ledger;

TEST_CASE("counting books terabytes without taking a byte") {
  Ledger ledger;
  Counting counting(ledger, Account::weights);
  constexpr std::size_t much = std::size_t{1} << 44;
  std::byte* const block = counting.allocate(much, 2u << 20);
  CHECK(block != nullptr);
  CHECK(ledger.used(Account::weights) == much);
  counting.deallocate(block, much);
  CHECK(ledger.used() == 0);
  CHECK(ledger.peak() == much);
}

TEST_CASE("the address that counting hands out is aligned to every power of two") {
  Ledger ledger;
  Counting counting(ledger, Account::kv);
  for (std::size_t alignment = 1; alignment != 0; alignment *= 2) {
    CAPTURE(alignment);
    std::byte* const block = counting.allocate(1, alignment);
    REQUIRE(block != nullptr);
    CHECK(reinterpret_cast<std::uintptr_t>(block) % alignment == 0);
  }
}

TEST_CASE("counting refuses where the real thing would") {
  Ledger ledger(100);
  Counting counting(ledger, Account::kv);
  CHECK(counting.allocate(101, 1) == nullptr);
  CHECK(ledger.used() == 0);
}

TEST_CASE("a counting allocator changes accounts") {
  Ledger ledger(100);
  Counting state = Counting(ledger, Account::kv).book_as(Account::state);
  CHECK(state.account() == Account::state);
  CHECK(state.allocate(10, 1) != nullptr);
  CHECK(ledger.used(Account::state) == 10);
}

}  // namespace counting_test
