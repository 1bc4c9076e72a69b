// SPDX-License-Identifier: Apache-2.0
//
// What kv/concept.hpp promises of a storage, as checks for any: those of the library, and yours. In a test
// case of doctest:
//
//   mica::test::check_storage<MyStorage<mica::alloc::Aligned>>();
//
// tests/model/kv_same_bits.hpp runs models on it.

#pragma once

#include "mica/kv/concept.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

namespace mica::test {

inline constexpr std::array<kv::LayerShape, 3> promised_layers = {{{2, 192}, {1, 64}, {3, 128}}};

/// Writes its own place into every tile that a capacity promises, through runs, and reads all of them back.
template <KvStorage Storage>
void check_tiles(const Storage& storage, std::size_t tokens) {
  const auto& layers = promised_layers;
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

/// Runs cover every tile once, and tiles do not overlap.
template <KvStorage Storage>
void check_runs() {
  for (const std::size_t tokens : {1u, 16u, 17u, 256u, 257u, 600u, 700u}) {
    CAPTURE(tokens);
    Storage storage({}, promised_layers, 700);
    CHECK(storage.capacity() == 0);
    REQUIRE(storage.reserve(tokens));
    CHECK(storage.capacity() >= tokens);
    check_tiles(storage, tokens);
  }
}

/// Tokens stay where they are while a storage grows, and what a shrink leaves stays as it was.
template <KvStorage Storage>
void check_growth() {
  Storage storage({}, promised_layers, 700);
  REQUIRE(storage.reserve(100));
  std::byte* const tile = storage.run(2, 1, 6).data;
  std::memset(tile, 42, 128);
  for (std::size_t tokens = 100; tokens <= 700; ++tokens) REQUIRE(storage.reserve(tokens));
  CHECK(storage.run(2, 1, 6).data == tile);
  CHECK(static_cast<int>(tile[127]) == 42);
  Storage moved(std::move(storage));
  moved.shrink(100);
  CHECK(moved.run(2, 1, 6).data == tile);
  CHECK(static_cast<int>(tile[0]) == 42);
  REQUIRE(moved.reserve(700));
  check_tiles(moved, 700);
  moved.shrink(0);
  REQUIRE(moved.reserve(300));
  check_tiles(moved, 300);
}

/// It never holds more than it was made for.
template <KvStorage Storage>
void check_limit() {
  Storage storage({}, promised_layers, 100);
  CHECK(storage.reserve(100));
  const std::size_t capacity = storage.capacity();
  CHECK(capacity >= 100);
  CHECK_FALSE(storage.reserve(113));  // a tile more than the last one begun
  CHECK(storage.capacity() == capacity);
  check_tiles(storage, 100);
}

/// Takes a storage through all its context in steps of all sizes; visit(tiles): where those of the layer with
/// a window lie.
template <KvStorage Storage, class F>
void walk_window(Storage& storage, std::span<const kv::LayerShape> shapes, F&& visit) {
  const std::size_t step = shapes[1].step;
  for (std::size_t pos = 0, n = 1; pos + n <= 2000; pos += n, n = n % step + 1) {
    REQUIRE(storage.reserve(pos + n));
    CHECK(storage.first_tile(0) == 0);
    REQUIRE(storage.first_tile(1) * 16 <= shapes[1].first_seen(pos));
    std::vector<std::byte*> resident;
    for (std::size_t t = shapes[1].first_seen(pos) / 16; t * 16 < pos + n; ++t) {
      resident.push_back(storage.run(1, 0, t).data);
    }
    std::sort(resident.begin(), resident.end());
    CHECK(std::adjacent_find(resident.begin(), resident.end()) ==
          resident.end());  // no two tiles share a place
    visit(resident);
  }
}

/// A layer with a window holds what a step can see, wherever it begins.
/// in_place: and takes the places of no more tiles than a ring has.
template <KvStorage Storage>
void check_windows(bool in_place) {
  for (const std::size_t window : {1u, 15u, 16u, 100u, 700u}) {
    for (const std::size_t step : {1u, 16u, 33u}) {
      CAPTURE(window);
      CAPTURE(step);
      const std::array<kv::LayerShape, 3> shapes = {{{2, 64}, {1, 64, window, step}, {1, 64}}};
      const std::size_t ring = shapes[1].ring_tiles();
      CHECK(ring * 16 < window + step + 2 * 16);
      // On the heap: gcc 12 warns of an uninitialised buffer in the optional of a local one.
      const auto made = std::make_unique<Storage>(typename Storage::Allocator{}, shapes, 2000);
      Storage& storage = *made;
      std::vector<std::byte*> places;
      walk_window(storage, shapes, [&](const std::vector<std::byte*>& resident) {
        places.insert(places.end(), resident.begin(), resident.end());
      });
      std::sort(places.begin(), places.end());
      places.erase(std::unique(places.begin(), places.end()), places.end());
      if (in_place) CHECK(places.size() <= ring);
      storage.shrink(0);
      CHECK(storage.first_tile(1) == 0);
    }
  }
}

/// All of it, for a storage whose allocator needs nothing.
template <KvStorage Storage>
void check_storage() {
  check_runs<Storage>();
  check_growth<Storage>();
  check_limit<Storage>();
  check_windows<Storage>(false);
}

}  // namespace mica::test
