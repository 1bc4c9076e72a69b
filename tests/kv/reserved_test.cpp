// SPDX-License-Identifier: Apache-2.0

#include "mica/kv/reserved.hpp"

#include "mica/alloc/aligned.hpp"
#include "mica/alloc/budgeted.hpp"
#include "mica/alloc/counting.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstring>

namespace mica::test::reserved_test {
namespace {

using budget::Account;
using Booked = kv::Reserved<alloc::Budgeted<alloc::Aligned>>;

constexpr std::array<kv::LayerShape, 2> layers = {{{2, 512}, {3, 256, 100, 32}}};

Booked booked(budget::Ledger& ledger, std::size_t max_tokens) {
  return {alloc::Budgeted<alloc::Aligned>(ledger, Account::kv), layers, max_tokens};
}

/// What so many tokens take: whole pages of each head, of the second layer its ring of 10 tiles.
std::size_t bytes(std::size_t tokens) {
  const std::size_t page = alloc::AddressSpace::page(), tiles = (tokens + 15) / 16;
  const auto pages = [&](std::size_t n) { return (n + page - 1) / page * page; };
  return 2 * pages(tiles * 512) + 3 * pages(std::min<std::size_t>(tiles, 10) * 256);
}

}  // namespace

TEST_CASE("a reserved storage books what has memory, 256 tokens at a time, and no addresses") {
  REQUIRE(layers[1].ring_tiles() == 10);
  budget::Ledger ledger;
  Booked storage = booked(ledger, std::size_t{1} << 30);
  CHECK(ledger.used() == 0);
  for (const std::size_t tokens : {1u, 100u, 256u, 257u, 1000u, 5000u}) {
    CAPTURE(tokens);
    REQUIRE(storage.reserve(tokens));
    CHECK(storage.capacity() == (tokens + 255) / 256 * 256);
    CHECK(ledger.used(Account::kv) == bytes(storage.capacity()));
  }
  CHECK(storage.run(0, 1, 0).tiles == storage.capacity() / 16);  // a head is one run
  CHECK(storage.run(1, 2, 0).tiles == 10);
  CHECK(storage.run(1, 2, 305).data == storage.run(1, 2, 5).data);
}

TEST_CASE("a reserved storage gives memory back, and what comes again is clean") {
  budget::Ledger ledger;
  Booked storage = booked(ledger, 5000);
  REQUIRE(storage.reserve(3000));
  std::byte* const tile = storage.run(0, 1, 180).data;
  std::memset(tile, 42, 512);
  storage.shrink(2700);
  CHECK(storage.capacity() == 3072);  // one grain more than 2,816
  storage.shrink(2500);
  CHECK(storage.capacity() == 2816);
  CHECK(ledger.used() == bytes(2816));
  REQUIRE(storage.reserve(3000));
  CHECK(storage.run(0, 1, 180).data == tile);
  CHECK(tile[0] == std::byte{0});
  storage.shrink(0);
  CHECK(storage.capacity() == 0);
  CHECK(ledger.used() == 0);
}

TEST_CASE("a reserved storage that the budget refuses is as before") {
  budget::Ledger ledger(bytes(512));
  Booked storage = booked(ledger, 5000);
  REQUIRE(storage.reserve(300));
  CHECK(ledger.left() == 0);
  CHECK_FALSE(storage.reserve(513));
  CHECK(storage.capacity() == 512);
  CHECK(ledger.left() == 0);
  Booked moved(std::move(storage));
  std::memset(moved.run(0, 0, 31).data, 1, 512);
  moved.shrink(0);
  CHECK(ledger.used() == 0);
}

TEST_CASE("addresses that the system has not are a refusal") {
  const std::array<kv::LayerShape, 1> wide = {{{1u << 14, std::size_t{1} << 20}}};
  kv::Reserved<> storage({}, wide, std::size_t{1} << 30);
  CHECK_FALSE(storage.reserve(1));
  CHECK(storage.capacity() == 0);
}

TEST_CASE("a reserved storage run dry books the same and has no addresses") {
  budget::Ledger dry, wet;
  kv::Reserved<alloc::Counting> counted(alloc::Counting(dry, Account::kv), layers, 5000);
  Booked storage = booked(wet, 5000);
  for (const std::size_t tokens : {1u, 700u, 3000u, 5000u}) {
    REQUIRE(counted.reserve(tokens));
    REQUIRE(storage.reserve(tokens));
    CHECK(dry.used() == wet.used());
  }
  CHECK(counted.run(0, 0, 0).data == nullptr);
}

}  // namespace mica::test::reserved_test
