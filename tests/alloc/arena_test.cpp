// SPDX-License-Identifier: Apache-2.0

#include "mica/alloc/arena.hpp"

#include "alloc_models.hpp"
#include "mica/alloc/counting.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <limits>

namespace arena_test {

using mica::alloc::Aligned;
using mica::alloc::Arena;
using mica::alloc::Buffer;

TEST_CASE("an arena hands out aligned blocks that do not overlap") {
  auto arena = Arena<Aligned>::make({}, 4096);
  REQUIRE(arena);
  auto handle = arena->handle();
  std::byte* const a = handle.allocate(3, 1);
  std::byte* const b = handle.allocate(10, 64);
  std::byte* const c = handle.allocate(1, 1);
  REQUIRE(a != nullptr);
  REQUIRE(b != nullptr);
  CHECK(reinterpret_cast<std::uintptr_t>(b) % 64 == 0);
  CHECK(b >= a + 3);
  CHECK(c == b + 10);
  CHECK(arena->used() == static_cast<std::size_t>(c + 1 - a));
  CHECK(reinterpret_cast<std::uintptr_t>(handle.allocate(1, 1024)) % 1024 == 0);
}

TEST_CASE("a full arena refuses and keeps what it has") {
  auto arena = Arena<Aligned>::make({}, 256);
  REQUIRE(arena);
  auto handle = arena->handle();
  REQUIRE(handle.allocate(200, 1) != nullptr);
  CHECK(handle.allocate(57, 1) == nullptr);
  CHECK(handle.allocate(1, 256) == nullptr);  // the padding alone is too much
  CHECK(handle.allocate(std::numeric_limits<std::size_t>::max(), 1) == nullptr);
  CHECK(arena->used() == 200);
  CHECK(handle.allocate(56, 1) != nullptr);
  CHECK(handle.allocate(1, 1) == nullptr);
}

TEST_CASE("reset gives the same block again, and the peak remembers the fullest step") {
  auto arena = Arena<Aligned>::make({}, 4096);
  REQUIRE(arena);
  auto handle = arena->handle();
  std::byte* const first = handle.allocate(1000, 64);
  REQUIRE(handle.allocate(2000, 64) != nullptr);
  const std::size_t fullest = arena->used();
  arena->reset();
  CHECK(arena->used() == 0);
  CHECK(handle.allocate(500, 64) == first);
  CHECK(arena->peak() == fullest);
}

TEST_CASE("rewind takes back what came after a mark") {
  auto arena = Arena<Aligned>::make({}, 1024);
  REQUIRE(arena);
  auto handle = arena->handle();
  REQUIRE(handle.allocate(100, 1) != nullptr);
  const std::size_t mark = arena->used();
  std::byte* const layer_0 = handle.allocate(300, 64);
  arena->rewind(mark);
  CHECK(handle.allocate(300, 64) == layer_0);
}

TEST_CASE("buffers live in an arena, and a late one cannot free a newer one's bytes") {
  auto arena = Arena<Aligned>::make({}, 1024);
  REQUIRE(arena);
  using Scratch = Buffer<float, Arena<Aligned>::Handle>;
  auto kept = Scratch::make(arena->handle(), 64);
  REQUIRE(kept);
  arena->reset();
  auto next = Scratch::make(arena->handle(), 64);
  REQUIRE(next);
  kept.reset();
  auto third = Scratch::make(arena->handle(), 64);
  REQUIRE(third);
  CHECK(third->data() >= next->data() + 64);
  CHECK_FALSE(Scratch::make(arena->handle(), 1000));
}

TEST_CASE("an arena whose block is refused is not made") {
  CHECK_FALSE(Arena<mica::test::Refusing>::make({}, 64));
}

TEST_CASE("a dry arena measures the size that a real one needs") {
  mica::budget::Ledger ledger;
  using Dry = Arena<mica::alloc::Counting>;
  static_assert(Dry::Handle::dry);
  auto arena = Dry::make(mica::alloc::Counting(ledger, mica::budget::Account::activations), 1u << 30);
  REQUIRE(arena);
  CHECK(ledger.used() == 1u << 30);
  auto x = Buffer<float, Dry::Handle>::make(arena->handle(), 100);
  auto y = Buffer<float, Dry::Handle>::make(arena->handle(), 100);
  REQUIRE(x);
  REQUIRE(y);
  const std::size_t needed = arena->peak();
  CHECK(needed == 912);  // 400, up to 512, 400

  auto real = Arena<Aligned>::make({}, needed);
  REQUIRE(real);
  CHECK(Buffer<float, Arena<Aligned>::Handle>::make(real->handle(), 100));
  CHECK(Buffer<float, Arena<Aligned>::Handle>::make(real->handle(), 100));
  CHECK(real->used() == needed);
}

}  // namespace arena_test
