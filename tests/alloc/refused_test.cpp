// SPDX-License-Identifier: Apache-2.0

#include "mica/alloc/aligned.hpp"
#include "mica/alloc/budgeted.hpp"

#include <doctest/doctest.h>

#include <cstdint>

namespace mica::test::refused_test {
namespace {

/// Has no memory at all.
struct Empty : alloc::Unbooked<Empty> {
  static constexpr bool dry = false;
  [[nodiscard]] std::byte* allocate(std::size_t /*bytes*/, std::size_t /*alignment*/) noexcept {
    return nullptr;
  }
  void deallocate(std::byte* /*block*/, std::size_t /*bytes*/) noexcept {}
};

}  // namespace

TEST_CASE("a refusal names the budget, the system where the budget has room, or the allocator") {
  budget::Ledger ledger(1000);
  alloc::Budgeted<alloc::Aligned> booked(ledger, budget::Account::weights);
  std::byte* const block = booked.allocate(600, 64);
  REQUIRE(block != nullptr);
  REQUIRE(booked.allocate(600, 64) == nullptr);
  CHECK(alloc::refused(booked, 600) == "do not fit the memory budget of 1000 bytes, of which 400 are left");
  booked.deallocate(block, 600);

  alloc::Budgeted<Empty> empty(ledger, budget::Account::weights);
  REQUIRE(empty.allocate(600, 64) == nullptr);
  CHECK(alloc::refused(empty, 600) == "were refused by the system");
  CHECK(alloc::refused(Empty(), 600) == "were refused by the allocator");
}

}  // namespace mica::test::refused_test
