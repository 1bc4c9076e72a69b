// SPDX-License-Identifier: Apache-2.0
//
// What every KV storage promises, contiguous, segmented or chosen by name.

#include "io/temporary_folder.hpp"
#include "mica/alloc/aligned.hpp"
#include "mica/alloc/budgeted.hpp"
#include "mica/kv/any_storage.hpp"
#include "mica/kv/contiguous.hpp"
#include "mica/kv/paged.hpp"
#include "mica/kv/reserved.hpp"
#include "mica/kv/segmented.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <vector>

namespace mica::test {
namespace {

using A = alloc::Aligned;

constexpr std::array<kv::LayerShape, 3> layers = {{{2, 192}, {1, 64}, {3, 128}}};

/// Writes its own place into every tile that a capacity promises, through runs, and reads all of them back.
template <class Storage>
void check_tiles(const Storage& storage, std::size_t tokens) {
  const std::size_t tiles = (tokens + 15) / 16;
  std::map<const std::byte*, std::size_t> taken;  // address to bytes
  const auto each = [&](auto&& visit) {
    for (std::size_t l = 0; l < layers.size(); ++l) {
      for (std::size_t h = 0; h < layers[l].kv_heads; ++h) {
        for (std::size_t t = 0; t < tiles;) {
          const kv::Run run = storage.run(l, h, t);
          REQUIRE(run.tiles >= 1);
          const std::size_t n = std::min(run.tiles, tiles - t);
          for (std::size_t i = 0; i < n; ++i) visit(l, h, t + i, run.data + i * layers[l].tile_bytes);
          t += n;
        }
      }
    }
  };
  each([&](std::size_t l, std::size_t h, std::size_t t, std::byte* tile) {
    CHECK(taken.emplace(tile, layers[l].tile_bytes).second);
    std::memset(tile, static_cast<int>((l * 97 + h * 31 + t) & 0xFF), layers[l].tile_bytes);
    CHECK(storage.run(l, h, t).data == tile);  // a tile has one address, wherever a walk begins
  });
  const std::byte* end = nullptr;
  for (const auto& [address, bytes] : taken) {
    CHECK(address >= end);  // no two tiles overlap
    CHECK(reinterpret_cast<std::uintptr_t>(address) % 64 == 0);
    end = address + bytes;
  }
  each([&](std::size_t l, std::size_t h, std::size_t t, const std::byte* tile) {
    const auto value = static_cast<std::byte>((l * 97 + h * 31 + t) & 0xFF);
    CHECK(std::all_of(tile, tile + layers[l].tile_bytes, [&](std::byte b) { return b == value; }));
  });
}

}  // namespace

TEST_CASE_TEMPLATE("runs cover every tile once, and tiles do not overlap", Storage, kv::Contiguous<A>,
                   kv::Segmented<A>, kv::Reserved<A>, kv::Paged<A>, kv::AnyStorage<A>) {
  for (const std::size_t tokens : {1u, 16u, 17u, 256u, 257u, 600u, 700u}) {
    CAPTURE(tokens);
    Storage storage(A{}, layers, 700);
    REQUIRE(storage.reserve(tokens));
    CHECK(storage.capacity() >= tokens);
    check_tiles(storage, tokens);
  }
}

TEST_CASE_TEMPLATE("tokens stay where they are while a storage grows", Storage, kv::Contiguous<A>,
                   kv::Segmented<A>, kv::Reserved<A>, kv::Paged<A>, kv::AnyStorage<A>) {
  Storage storage(A{}, layers, 700);
  REQUIRE(storage.reserve(100));
  std::byte* const tile = storage.run(2, 1, 6).data;
  std::memset(tile, 42, 128);
  for (std::size_t tokens = 100; tokens <= 700; ++tokens) REQUIRE(storage.reserve(tokens));
  CHECK(storage.run(2, 1, 6).data == tile);
  CHECK(static_cast<int>(tile[127]) == 42);
  storage.shrink(100);
  CHECK(storage.run(2, 1, 6).data == tile);
  CHECK(static_cast<int>(tile[0]) == 42);
}

TEST_CASE_TEMPLATE("a storage never holds more than it was made for", Storage, kv::Contiguous<A>,
                   kv::Segmented<A>, kv::Reserved<A>, kv::Paged<A>, kv::AnyStorage<A>) {
  Storage storage(A{}, layers, 100);
  CHECK(storage.capacity() == 0);
  CHECK(storage.reserve(100));
  CHECK(storage.capacity() == 112);
  CHECK_FALSE(storage.reserve(113));
  CHECK(storage.capacity() == 112);
}

TEST_CASE_TEMPLATE("a layer with a window holds what a step can see, wherever it begins", Storage,
                   kv::Contiguous<A>, kv::Segmented<A>, kv::AnyStorage<A>) {
  for (const std::size_t window : {1u, 15u, 16u, 100u, 700u}) {
    for (const std::size_t step : {1u, 16u, 33u}) {
      CAPTURE(window);
      CAPTURE(step);
      const std::array<kv::LayerShape, 3> shapes = {{{2, 64}, {1, 64, window, step}, {1, 64}}};
      const std::size_t ring = shapes[1].ring_tiles();
      CHECK(ring * 16 < window + step + 2 * 16);
      Storage storage(A{}, shapes, 2000);
      std::vector<std::byte*> places;
      for (std::size_t pos = 0, n = 1; pos + n <= 2000; pos += n, n = n % step + 1) {
        REQUIRE(storage.reserve(pos + n));
        CHECK(storage.first_tile(0) == 0);
        REQUIRE(storage.first_tile(1) * 16 <= shapes[1].first_seen(pos));
        std::vector<std::byte*> held;
        for (std::size_t t = shapes[1].first_seen(pos) / 16; t * 16 < pos + n; ++t) {
          held.push_back(storage.run(1, 0, t).data);
        }
        std::sort(held.begin(), held.end());
        CHECK(std::adjacent_find(held.begin(), held.end()) == held.end());  // no two tiles share a place
        places.insert(places.end(), held.begin(), held.end());
      }
      std::sort(places.begin(), places.end());
      places.erase(std::unique(places.begin(), places.end()), places.end());
      CHECK(places.size() <= ring);
      storage.shrink(0);
      CHECK(storage.first_tile(1) == 0);
    }
  }
}

TEST_CASE("a contiguous storage takes all with the first token and gives all back with the last") {
  budget::Ledger ledger;
  using Booked = alloc::Budgeted<A>;
  kv::Contiguous<Booked> storage(Booked(ledger, budget::Account::kv), layers, 700);
  const std::size_t bytes = 44 * (2 * 192 + 64 + 3 * 128);
  CHECK(ledger.used() == 0);
  CHECK(storage.reserve(0));
  CHECK(ledger.used() == 0);
  CHECK(storage.reserve(1));
  CHECK(ledger.used() == bytes);
  CHECK(storage.run(0, 0, 0).tiles == 44);
  storage.shrink(1);
  CHECK(ledger.used() == bytes);
  storage.shrink(0);
  CHECK(ledger.used() == 0);
  CHECK(storage.capacity() == 0);
}

TEST_CASE("a contiguous storage that the budget refuses is as before") {
  budget::Ledger ledger(1000);
  using Booked = alloc::Budgeted<A>;
  kv::Contiguous<Booked> storage(Booked(ledger, budget::Account::kv), layers, 700);
  CHECK_FALSE(storage.reserve(1));
  CHECK(storage.capacity() == 0);
  CHECK(ledger.used() == 0);
}

TEST_CASE("a storage is chosen by name, and an unknown name is refused with the known ones") {
  kv::AnyStorage<A> contiguous(A{}, layers, 700, "contiguous"), segmented(A{}, layers, 700, "segmented");
  CHECK(contiguous.reserve(1));
  CHECK(segmented.reserve(1));
  CHECK(contiguous.capacity() == 704);
  CHECK(segmented.capacity() == 256);
  const Error error = refusal([] { return kv::AnyStorage<A>(A{}, layers, 700, "pagd\n"); });
  CHECK(refusal([] { kv::AnyStorage<A>::check_name("pagd\n"); }).message() == error.message());
  CHECK_NOTHROW(kv::AnyStorage<A>::check_name("reserved"));
  CHECK(error.code() == ErrorCode::usage);
  CHECK(mentions(error, "pagd\\x0a", "segmented, contiguous, reserved, paged, spilled"));
}

TEST_CASE("a storage refuses a size that no memory has") {
  const std::array<kv::LayerShape, 1> wide = {{{1u << 14, std::size_t{1} << 20}}};
  kv::AnyStorage<> contiguous({}, wide, std::size_t{1} << 30, "contiguous");
  CHECK_FALSE(contiguous.reserve(1));
  kv::AnyStorage<> segmented({}, wide, std::size_t{1} << 20, "segmented");
  CHECK_FALSE(segmented.reserve(std::size_t{1} << 20));
  CHECK(segmented.capacity() == 0);
}

}  // namespace mica::test
