// SPDX-License-Identifier: Apache-2.0

#include "mica/kv/paged.hpp"

#include "mica/alloc/aligned.hpp"
#include "mica/alloc/budgeted.hpp"
#include "mica/alloc/counting.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace mica::test::paged_test {
namespace {

using budget::Account;
using Booked = kv::Paged<alloc::Budgeted<alloc::Aligned>>;

constexpr std::array<kv::LayerShape, 3> layers = {{{2, 128}, {3, 64, 40, 16}, {1, 128}}};
constexpr std::size_t whole = 3 * 128 + 64, ring = 3 * 64 + 64;  // a page of each kind and its footer
constexpr std::size_t ring_pages = 5;

Booked booked(budget::Ledger& ledger) {
  return {alloc::Budgeted<alloc::Aligned>(ledger, Account::kv), layers, 1000};
}
std::size_t bytes(std::size_t tokens) {
  const std::size_t tiles = (tokens + 15) / 16;
  return tiles * whole + std::min(tiles, ring_pages) * ring;
}

/// Writes a value into the tile of a position, in each head of a layer.
void write(Booked& storage, std::size_t layer, std::size_t pos, int value) {
  for (std::size_t h = 0; h < layers[layer].kv_heads; ++h) {
    std::memset(storage.run(layer, h, pos / 16).data, value, layers[layer].tile_bytes);
  }
}
int read(const Booked& storage, std::size_t layer, std::size_t pos) {
  return static_cast<int>(storage.run(layer, layers[layer].kv_heads - 1, pos / 16).data[5]);
}

}  // namespace

TEST_CASE("pages come with every 16 tokens and go with them") {
  REQUIRE(layers[1].ring_tiles() == ring_pages);
  budget::Ledger ledger;
  Booked storage = booked(ledger);
  for (const std::size_t tokens : {1u, 16u, 17u, 70u, 90u, 500u}) {
    REQUIRE(storage.reserve(tokens));
    CHECK(ledger.used(Account::kv) == bytes(tokens));
  }
  storage.shrink(495);
  CHECK(ledger.used() == 31 * whole + (ring_pages - 1) * ring);
  storage.shrink(400);  // of the ring nothing is left that was there after 400 tokens
  CHECK(ledger.used() == 25 * whole);
  CHECK(storage.first_tile(1) == 32 - ring_pages);
  REQUIRE(storage.reserve(420));
  CHECK(ledger.used() == 27 * whole + 2 * ring);
  Booked moved(std::move(storage));
  moved = booked(ledger);
  CHECK(ledger.used() == 0);
}

TEST_CASE("a page has nothing of those who had its memory before") {
  for (int i = 0; i < 3; ++i) {
    kv::Paged<alloc::Aligned> storage({}, layers, 1000);
    REQUIRE(storage.reserve(16));
    std::byte* const tile = storage.run(0, 0, 0).data;
    CHECK(std::all_of(tile, tile + 128, [](std::byte b) { return b == std::byte{0}; }));
    std::memset(tile, 42, 128);
  }
}

TEST_CASE("a storage that adopts another's tokens has them in the same memory") {
  budget::Ledger ledger;
  Booked a = booked(ledger), b = booked(ledger), c = booked(ledger);
  REQUIRE(a.reserve(70));
  for (std::size_t pos = 0; pos < 70; pos += 16) write(a, 0, pos, static_cast<int>(pos));
  const auto one = ledger.used();
  CHECK(b.adopt(a, 64) == 64);
  CHECK(b.capacity() == 64);
  CHECK(ledger.used() == one);
  CHECK(b.run(0, 1, 3).data == a.run(0, 1, 3).data);
  CHECK(c.adopt(b, 50) == 50);  // three pages of a's, and a copy of the fourth
  CHECK(ledger.used() == one + whole + ring);
  CHECK(c.run(0, 1, 2).data == a.run(0, 1, 2).data);
  CHECK(c.run(0, 1, 3).data != a.run(0, 1, 3).data);
  CHECK(read(c, 0, 48) == 48);
  a.shrink(0);
  CHECK(read(b, 0, 48) == 48);
  b.shrink(0);
  CHECK(ledger.used() == bytes(64));
  CHECK(read(c, 0, 32) == 32);
}

TEST_CASE("a page that others have is copied before it is written") {
  budget::Ledger ledger;
  Booked a = booked(ledger), b = booked(ledger);
  REQUIRE(a.reserve(64));
  for (std::size_t pos = 0; pos < 64; pos += 16) write(a, 2, pos, 7);
  REQUIRE(b.adopt(a, 64) == 64);
  a.shrink(40);  // b still has tokens 40 to 63
  REQUIRE(a.reserve(60));
  CHECK(read(a, 2, 33) == 7);  // tokens 32 to 39 came along
  write(a, 2, 40, 9);
  write(a, 2, 48, 9);
  CHECK(read(b, 2, 33) == 7);
  CHECK(read(b, 2, 60) == 7);
  CHECK(a.run(2, 0, 1).data == b.run(2, 0, 1).data);
  REQUIRE(b.reserve(80));
  write(b, 2, 64, 8);
  CHECK(read(a, 2, 33) == 9);
}

TEST_CASE("a ring whose pages others have leaves them and goes on") {
  budget::Ledger ledger;
  Booked a = booked(ledger), b = booked(ledger);
  REQUIRE(a.reserve(64));
  for (std::size_t pos = 0; pos < 64; pos += 16) write(a, 1, pos, static_cast<int>(pos));
  REQUIRE(b.adopt(a, 64) == 64);
  for (std::size_t pos = 64; pos < 400; pos += 16) {
    REQUIRE(a.reserve(pos + 16));
    write(a, 1, pos, 99);
  }
  for (std::size_t pos = 0; pos < 64; pos += 16) CHECK(read(b, 1, pos) == static_cast<int>(pos));
  CHECK(ledger.used() == bytes(400) + 4 * ring);
  Booked late = booked(ledger);
  CHECK(late.adopt(a, 390) == 390);
  CHECK(late.first_tile(1) == 25 - ring_pages);
  CHECK(late.first_tile(0) == 0);
}

TEST_CASE("pages that the budget refuses leave everything as it was") {
  budget::Ledger ledger(bytes(80) + whole);
  Booked a = booked(ledger), b = booked(ledger);
  REQUIRE(a.reserve(80));
  CHECK_FALSE(a.reserve(200));
  CHECK(a.capacity() == 80);
  CHECK(ledger.used() == bytes(80));
  write(a, 0, 64, 5);
  CHECK(b.adopt(a, 70) == 0);  // there is room for one kind of page
  CHECK(b.capacity() == 0);
  CHECK(ledger.used() == bytes(80));
  CHECK(b.adopt(a, 64) == 64);
  a.shrink(60);
  REQUIRE(b.reserve(80));
  CHECK_FALSE(a.reserve(61));  // the page is b's too, and there is no room for a copy
  CHECK(read(a, 0, 48) == read(b, 0, 48));
  b.shrink(0);
  CHECK(a.reserve(61));
}

TEST_CASE("a paged storage run dry books the same, of sequences that share pages too") {
  budget::Ledger dry, wet;
  using Counted = kv::Paged<alloc::Counting>;
  const alloc::Counting counting(dry, Account::kv);
  Counted counted(counting, layers, 1000), other(counting, layers, 1000);
  Booked storage = booked(wet), real_other = booked(wet);
  for (const std::size_t tokens : {1u, 100u, 1000u}) {
    REQUIRE(counted.reserve(tokens));
    REQUIRE(storage.reserve(tokens));
    CHECK(dry.used() == wet.used());
  }
  CHECK(other.adopt(counted, 100) == 100);
  CHECK(real_other.adopt(storage, 100) == 100);
  CHECK(dry.used() == wet.used());
  REQUIRE((other.reserve(200) && real_other.reserve(200)));
  CHECK(dry.used() == wet.used());
  counted.shrink(0);
  storage.shrink(0);
  CHECK(dry.used() == wet.used());
  other.shrink(0);
  CHECK(dry.used() == 0);
}

}  // namespace mica::test::paged_test
