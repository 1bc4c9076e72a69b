// SPDX-License-Identifier: Apache-2.0

#include "mica/kv/spilled_paged.hpp"

#include "kv/storage_promises.hpp"
#include "mica/alloc/aligned.hpp"
#include "mica/alloc/budgeted.hpp"
#include "mica/alloc/counting.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <utility>

namespace mica::test::spilled_paged_test {
namespace {

using budget::Account;
using Booked = kv::Spilled<kv::Paged<alloc::Budgeted<alloc::Aligned>>>;

constexpr std::array<kv::LayerShape, 3> layers = {{{2, 128}, {3, 64, 40, 16}, {1, 128}}};
constexpr std::size_t page = 4096, ring_pages = 5;  // of either kind, less than a block of the file
constexpr std::size_t handles = 2 * 4096;           // of both kinds, up to 63 pages of each

Booked booked(budget::Ledger& ledger) {
  return {alloc::Budgeted<alloc::Aligned>(ledger, Account::kv), layers, 1000};
}
/// Pages of both kinds that so many tokens have.
std::size_t pages(std::size_t tokens) {
  const std::size_t tiles = (tokens + 15) / 16;
  return tiles + std::min(tiles, ring_pages);
}

int content(std::size_t layer, std::size_t head, std::size_t tile, int round) {
  return static_cast<int>(layer * 50 + head * 17 + tile * 3 + static_cast<std::size_t>(round) * 101) & 0xFF;
}
/// Takes a storage to so many tokens, a step of 16 at a time, and writes the tiles from the one of `from` on.
void write(Booked& storage, std::size_t from, std::size_t to, int round) {
  for (std::size_t pos = from; pos < to; pos = std::min(to, pos + 16)) {
    REQUIRE(storage.reserve(std::min(to, pos + 16)));
    for (std::size_t l = 0; l < layers.size(); ++l) {
      for (std::size_t h = 0; h < layers[l].kv_heads; ++h) {
        for (std::size_t t = pos / 16; t * 16 < std::min(to, pos + 16); ++t) {
          std::memset(storage.run(l, h, t).data, content(l, h, t, round), layers[l].tile_bytes);
        }
      }
    }
  }
}
/// Whether the tiles of tokens [from, to) that are held are those that write() wrote.
bool holds(const Booked& storage, std::size_t from, std::size_t to, int round) {
  for (std::size_t l = 0; l < layers.size(); ++l) {
    for (std::size_t h = 0; h < layers[l].kv_heads; ++h) {
      for (std::size_t t = std::max(from / 16, storage.first_tile(l)); t * 16 < to; ++t) {
        const std::byte* const tile = storage.run(l, h, t).data;
        for (std::size_t i = 0; i < layers[l].tile_bytes; ++i) {
          if (std::to_integer<int>(tile[i]) != content(l, h, t, round)) return false;
        }
      }
    }
  }
  return true;
}

}  // namespace

TEST_CASE("shared pages with a file keep what every storage promises") {
  check_storage<kv::Spilled<kv::Paged<alloc::Aligned>>>();
}

TEST_CASE("a sequence that is parked leaves memory, and has its tokens again when it goes on") {
  budget::Ledger ledger;
  Booked storage = booked(ledger);
  CHECK_FALSE(storage.park());  // there is nothing
  write(storage, 0, 200, 1);
  CHECK(ledger.used() == pages(200) * page + handles);
  for (int round = 0; round < 3; ++round) {
    CHECK(storage.park());
    CHECK(storage.park());
    CHECK(ledger.used() == handles);
    REQUIRE(storage.reserve(200));
    CHECK(ledger.used() == pages(200) * page + handles);
    CHECK(holds(storage, 0, 200, 1));
  }
  storage.shrink(192);
  write(storage, 192, 330, 2);  // what the file has of these pages is old
  CHECK(storage.park());
  REQUIRE(storage.reserve(331));
  CHECK(holds(storage, 0, 192, 1));
  CHECK(holds(storage, 208, 330, 2));
  CHECK(storage.park());
  Booked moved(std::move(storage));
  moved.shrink(100);                    // as it lies
  CHECK(ledger.used() == handles / 2);  // of the ring nothing is left
  REQUIRE(moved.reserve(100));
  CHECK(holds(moved, 0, 100, 1));
  CHECK(moved.first_tile(1) == 21 - ring_pages);  // the ring has gone on
  for (const std::size_t layer : {0u, 2u}) CHECK(moved.first_tile(layer) == 0);
  CHECK(std::to_integer<int>(moved.run(0, 1, 5).data[9]) == content(0, 1, 5, 1));
  CHECK(moved.park());
  moved.shrink(0);
  CHECK(ledger.used() == 0);
}

TEST_CASE("pages that others use stay in memory, and those of all who are parked are in the file once") {
  budget::Ledger ledger;
  Booked a = booked(ledger), b = booked(ledger), c = booked(ledger);
  write(a, 0, 64, 1);
  REQUIRE(b.adopt(a, 64) == 64);
  write(b, 64, 80, 2);
  const std::size_t both = pages(64), own = pages(80) - pages(64);
  CHECK(ledger.used() == (both + own) * page + handles);
  CHECK(a.park());
  CHECK(ledger.used() == (both + own) * page + handles);  // b uses them
  CHECK(c.adopt(a, 64) == 0);                             // not from where they may not lie
  CHECK(b.park());
  CHECK(ledger.used() == handles);
  REQUIRE(a.reserve(64));
  CHECK(ledger.used() == both * page + handles);
  CHECK(holds(a, 0, 64, 1));
  CHECK(c.adopt(a, 50) == 50);
  CHECK(a.park());
  a.shrink(0);
  REQUIRE(b.reserve(80));
  CHECK(holds(b, 0, 64, 1));
  CHECK(holds(b, 64, 80, 2));
  CHECK(holds(c, 0, 48, 1));
  b.shrink(40);
  write(b, 40, 64, 3);  // into a copy
  CHECK(holds(c, 0, 48, 1));
  CHECK(c.park());
  c.shrink(0);
  CHECK(holds(b, 0, 32, 1));
  b.shrink(0);
  CHECK(ledger.used() == 0);
}

TEST_CASE("a sequence that ends while it is parked leaves shared pages to those who use them") {
  budget::Ledger ledger;
  Booked used = booked(ledger);
  {
    Booked parked = booked(ledger);
    write(parked, 0, 96, 1);
    REQUIRE(used.adopt(parked, 96) == 96);
    write(used, 96, 160, 1);
    CHECK(parked.park());
    Booked moved(std::move(parked));
    CHECK(moved.park());  // still
    moved = booked(ledger);
    CHECK(holds(used, 0, 160, 1));
    REQUIRE(moved.adopt(used, 96) == 96);
    CHECK(moved.park());
  }
  CHECK(holds(used, 0, 160, 1));
  CHECK(ledger.used() == pages(160) * page + handles);
  used.shrink(0);
  CHECK(ledger.used() == 0);
}

TEST_CASE("an owner who leaves pages to one that is parked takes them out of memory") {
  budget::Ledger ledger;
  Booked a = booked(ledger), b = booked(ledger);
  write(a, 0, 64, 1);
  REQUIRE(b.adopt(a, 64) == 64);
  CHECK(b.park());
  a.shrink(0);
  CHECK(ledger.used() == handles);
  REQUIRE(b.reserve(64));
  CHECK(holds(b, 0, 64, 1));
}

TEST_CASE("without memory a sequence stays parked, and without a file it stays in memory") {
  budget::Ledger ledger(pages(64) * page + 2 * handles);
  Booked a = booked(ledger), b = booked(ledger);
  write(a, 0, 64, 1);
  CHECK(a.park());
  write(b, 0, 64, 2);
  CHECK_FALSE(a.reserve(65));
  CHECK_FALSE(a.reserve(65));
  CHECK(ledger.used() == pages(64) * page + 2 * handles);
  CHECK(b.park());
  REQUIRE(a.reserve(64));
  CHECK(holds(a, 0, 64, 1));
  b.shrink(0);

  kv::FiledPages<alloc::Budgeted<alloc::Aligned>> nowhere(
      alloc::Budgeted<alloc::Aligned>(ledger, Account::kv), 100, "/nowhere at all");
  const auto one = nowhere.acquire();
  CHECK_FALSE(nowhere.file(one));
  nowhere.leave(one);
  CHECK(one->data != nullptr);
  nowhere.use(one);
  nowhere.release(one);
  a.shrink(0);
  CHECK(ledger.used() == 0);
}

TEST_CASE("shared pages run dry book the same and park nothing") {
  budget::Ledger dry, wet;
  kv::Spilled<kv::Paged<alloc::Counting>> counted(alloc::Counting(dry, Account::kv), layers, 1000);
  Booked storage = booked(wet);
  for (const std::size_t tokens : {1u, 100u, 1000u}) {
    REQUIRE(counted.reserve(tokens));
    REQUIRE(storage.reserve(tokens));
    CHECK(dry.used() == wet.used());
  }
  CHECK_FALSE(counted.park());
  counted.shrink(0);
  CHECK(dry.used() == 0);
}

}  // namespace mica::test::spilled_paged_test
