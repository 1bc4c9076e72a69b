// SPDX-License-Identifier: Apache-2.0

#include "mica/kv/spilled.hpp"

#include "mica/alloc/aligned.hpp"
#include "mica/alloc/budgeted.hpp"
#include "mica/alloc/counting.hpp"
#include "mica/base/error.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace mica::test::spilled_test {
namespace {

using budget::Account;
using Booked = kv::Spilled<alloc::Budgeted<alloc::Aligned>>;

constexpr std::size_t step = 48;
constexpr std::array<kv::LayerShape, 4> layers = {
    {{2, 128, 0, step}, {3, 64, 40, step}, {1, 192, 0, step}, {5, 64, 0, step}}};
constexpr std::size_t page =
    3 * 4096;  // of the three layers without a window, each less than a block of the file

Booked booked(budget::Ledger& ledger, std::size_t resident, std::string_view folder = {}) {
  return {alloc::Budgeted<alloc::Aligned>(ledger, Account::kv), layers, 2000, resident, folder};
}

/// What tile t of a head holds in round r.
int content(std::size_t layer, std::size_t head, std::size_t tile, int round) {
  return static_cast<int>(layer * 50 + head * 17 + tile * 3 + static_cast<std::size_t>(round) * 101) & 0xFF;
}

/// Takes the storage from `from` to `to` tokens, as steps do.
template <class Storage>
void write(Storage& storage, std::size_t from, std::size_t to, int round) {
  for (std::size_t pos = from; pos < to; pos = std::min(pos + step, to)) {
    const std::size_t end = std::min(pos + step, to);
    REQUIRE(storage.reserve(end));
    for (std::size_t l = 0; l < layers.size(); ++l) {
      REQUIRE(storage.fetch(l));
      storage.prefetch((l + 1) % layers.size());
      for (std::size_t h = 0; h < layers[l].kv_heads; ++h) {
        for (std::size_t t = pos / 16; t * 16 < end; ++t) {
          std::memset(storage.run(l, h, t).data, content(l, h, t, round), layers[l].tile_bytes);
        }
      }
    }
  }
}

/// Looks at all tiles of tokens [from, to) that layers without a window hold.
template <class Storage>
void check(Storage& storage, std::size_t from, std::size_t to, int round) {
  for (const std::size_t l : {0u, 2u, 3u, 2u}) {
    REQUIRE(storage.fetch(l));
    storage.prefetch(l == 3 ? 2 : 0);
    for (std::size_t h = 0; h < layers[l].kv_heads; ++h) {
      for (std::size_t t = from / 16; t * 16 < to; ++t) {
        const kv::Run run = storage.run(l, h, t);
        REQUIRE(run.tiles >= 1);
        const auto value = static_cast<std::byte>(content(l, h, t, round));
        CHECK(
            std::all_of(run.data, run.data + layers[l].tile_bytes, [&](std::byte b) { return b == value; }));
      }
    }
  }
}

}  // namespace

TEST_CASE("tokens that left memory come back layer by layer") {
  for (const std::size_t resident : {0u, 64u, 300u, 2000u}) {
    CAPTURE(resident);
    budget::Ledger ledger;
    Booked storage = booked(ledger, resident);
    for (std::size_t tokens = 0; tokens < 2000; tokens += 400) {
      write(storage, tokens, tokens + 400, 0);
      check(storage, 0, tokens + 400, 0);
    }
    const std::size_t pages = std::max<std::size_t>(resident / 64, 2);
    CHECK(storage.spilled() == 64 * (32 - std::min<std::size_t>(pages, 32)));
    CHECK(storage.capacity() == 2000);
    CHECK(storage.first_tile(0) == 0);
    CHECK(storage.first_tile(1) > 100);
    CHECK(ledger.peak(Account::kv) < pages * page + 20 * 3 * 64);
    storage.shrink(0);
    CHECK(ledger.used() == 0);
    CHECK(storage.capacity() == 0);
    write(storage, 0, 500, 1);
    check(storage, 0, 500, 1);
  }
}

TEST_CASE("a rewind into the file writes on from there") {
  for (const std::size_t to : {1u, 63u, 64u, 65u, 640u, 1000u, 1990u}) {
    CAPTURE(to);
    budget::Ledger ledger;
    Booked storage = booked(ledger, 128);
    write(storage, 0, 2000, 0);
    storage.shrink(to);
    CHECK(storage.capacity() >= to);
    storage.shrink(to - to % 16);
    const std::size_t end = std::min<std::size_t>(1200 + to / 2, 2000);
    write(storage, to - to % 16, end, 1);
    check(storage, 0, to - to % 16, 0);
    check(storage, to - to % 16, end, 1);
  }
}

TEST_CASE("a file that cannot be made is an error, unless all fits into memory") {
  budget::Ledger ledger;
  try {
    static_cast<void>(booked(ledger, 128, "/nowhere at all"));
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::file);
  }
  CHECK(booked(ledger, 2048, "/nowhere at all").reserve(2000));
}

TEST_CASE("memory that is not granted is a refusal that loses nothing") {
  budget::Ledger tight(2 * page + 5 * 3 * 64 + 40 * 3 * 64);
  Booked storage = booked(tight, 128);
  write(storage, 0, 128, 0);
  CHECK_FALSE(storage.reserve(129));  // no room for what comes back
  CHECK(storage.spill_failure() == nullptr);
  CHECK(storage.capacity() == 128);
  check(storage, 0, 128, 0);
}

TEST_CASE("a spilled storage run dry books the same and makes no file") {
  budget::Ledger dry, wet;
  kv::Spilled<alloc::Counting> counted(alloc::Counting(dry, Account::kv), layers, 2000, 128, "/nowhere");
  Booked storage = booked(wet, 128);
  for (std::size_t tokens = 0; tokens <= 2000; tokens += 40) {
    REQUIRE(counted.reserve(tokens));
    REQUIRE(storage.reserve(tokens));
    CHECK(dry.used() == wet.used());
    CHECK(dry.used(Account::io_buffers) == wet.used(Account::io_buffers));
  }
  CHECK(dry.used(Account::io_buffers) > 0);
  CHECK(counted.fetch(0));
}

}  // namespace mica::test::spilled_test
