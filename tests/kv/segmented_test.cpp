// SPDX-License-Identifier: Apache-2.0

#include "mica/kv/segmented.hpp"

#include "mica/alloc/aligned.hpp"
#include "mica/alloc/budgeted.hpp"
#include "mica/alloc/counting.hpp"

#include <doctest/doctest.h>

#include <array>
#include <vector>

namespace mica::test::segmented_test {
namespace {

using budget::Account;
using Counted = kv::Segmented<alloc::Counting>;
using Booked = kv::Segmented<alloc::Budgeted<alloc::Aligned>>;

constexpr std::array<kv::LayerShape, 2> layers = {{{2, 128}, {3, 64}}};
constexpr std::size_t tile_bytes = 2 * 128 + 3 * 64;  // of all heads of all layers

/// Capacities as a storage grows a token at a time up to max_tokens.
std::vector<std::size_t> growth(Counted& storage, std::size_t max_tokens) {
  std::vector<std::size_t> out;
  for (std::size_t tokens = 1; tokens <= max_tokens; ++tokens) {
    REQUIRE(storage.reserve(tokens));
    if (out.empty() || storage.capacity() != out.back()) out.push_back(storage.capacity());
  }
  return out;
}

}  // namespace

TEST_CASE("a segmented storage doubles up to 4,096 tokens and then grows evenly") {
  budget::Ledger ledger;
  Counted storage(alloc::Counting(ledger, Account::kv), layers, 20000);
  CHECK(storage.capacity() == 0);
  CHECK(ledger.used() == 0);
  const std::vector<std::size_t> expected = {256, 512, 1024, 2048, 4096, 8192, 12288, 16384, 20000};
  CHECK(growth(storage, 20000) == expected);
  CHECK(storage.segments() == expected.size());
  CHECK(ledger.used() == 20000 / 16 * tile_bytes);
  CHECK_FALSE(storage.reserve(20001));
}

TEST_CASE("a context that is no multiple of a tile is rounded up to one") {
  budget::Ledger ledger;
  Counted storage(alloc::Counting(ledger, Account::kv), layers, 300);
  CHECK(growth(storage, 300) == std::vector<std::size_t>{256, 304});
  CHECK_FALSE(storage.reserve(305));
  Counted small(alloc::Counting(ledger, Account::kv), layers, 1);
  CHECK(growth(small, 1) == std::vector<std::size_t>{16});
}

TEST_CASE("a step of a wide cache is at most a gibibyte, and at least 256 tokens") {
  budget::Ledger ledger;
  // 2 MiB a tile: 1 GiB is 8,192 tokens, so the step of 4,096 stays. 16 MiB: 1,024 tokens. 1 GiB: 256 anyway.
  const auto steps = [&](std::size_t bytes) {
    const std::array<kv::LayerShape, 1> wide = {{{1, bytes}}};
    Counted storage(alloc::Counting(ledger, Account::kv), wide, 10000);
    return growth(storage, 5000);
  };
  CHECK(steps(std::size_t{2} << 20) == std::vector<std::size_t>{256, 512, 1024, 2048, 4096, 8192});
  CHECK(steps(std::size_t{16} << 20) == std::vector<std::size_t>{256, 512, 1024, 2048, 3072, 4096, 5120});
  const auto widest = steps(std::size_t{1} << 30);
  for (std::size_t i = 0; i < widest.size(); ++i) CHECK(widest[i] == 256 * (i + 1));
}

TEST_CASE("reserving many tokens at once takes the same segments") {
  budget::Ledger ledger;
  Counted storage(alloc::Counting(ledger, Account::kv), layers, 20000);
  CHECK(storage.reserve(5000));
  CHECK(storage.capacity() == 8192);
  CHECK(storage.segments() == 6);
  CHECK(storage.reserve(0));
  CHECK(storage.capacity() == 8192);
}

TEST_CASE("a budget that refuses the next step gets the least one") {
  budget::Ledger ledger(1280 / 16 * tile_bytes);  // 1,024 tokens and 256 more
  Booked storage(alloc::Budgeted<alloc::Aligned>(ledger, Account::kv), layers, 20000);
  REQUIRE(storage.reserve(1024));
  CHECK(storage.reserve(1025));  // the step would be 1,024
  CHECK(storage.capacity() == 1280);
  CHECK(ledger.left() == 0);
}

TEST_CASE("a reservation that is refused gives back what it took on the way") {
  budget::Ledger ledger(2000 / 16 * tile_bytes);
  Booked storage(alloc::Budgeted<alloc::Aligned>(ledger, Account::kv), layers, 20000);
  REQUIRE(storage.reserve(300));
  const auto used = ledger.used();
  CHECK(storage.capacity() == 512);
  CHECK_FALSE(storage.reserve(4000));
  CHECK(storage.capacity() == 512);
  CHECK(ledger.used() == used);
  CHECK(storage.reserve(512));
}

TEST_CASE("shrinking gives back the segments in which no token is left") {
  budget::Ledger ledger;
  Booked storage(alloc::Budgeted<alloc::Aligned>(ledger, Account::kv), layers, 5000);
  REQUIRE(storage.reserve(5000));
  const auto expect = [&](std::size_t tokens, std::size_t capacity) {
    CAPTURE(tokens);
    storage.shrink(tokens);
    CHECK(storage.capacity() == capacity);
    CHECK(ledger.used() == (capacity + 15) / 16 * tile_bytes);
  };
  expect(5000, 5008);
  expect(4097, 5008);
  expect(4096, 4096);
  expect(2049, 4096);
  expect(2048, 2048);
  expect(257, 512);
  expect(1, 256);
  expect(0, 0);
  CHECK(storage.reserve(1));
  CHECK(storage.capacity() == 256);
}

TEST_CASE("a storage gives everything back when it dies") {
  budget::Ledger ledger;
  {
    Booked storage(alloc::Budgeted<alloc::Aligned>(ledger, Account::kv), layers, 5000);
    REQUIRE(storage.reserve(1000));
    Booked moved(std::move(storage));
    CHECK(moved.capacity() == 1024);
  }
  CHECK(ledger.used() == 0);
}

}  // namespace mica::test::segmented_test
