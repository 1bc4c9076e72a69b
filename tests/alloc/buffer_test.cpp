// SPDX-License-Identifier: Apache-2.0

#include "mica/alloc/buffer.hpp"

#include "alloc_models.hpp"
#include "mica/alloc/aligned.hpp"
#include "mica/alloc/counting.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>

namespace buffer_test {

using mica::alloc::Aligned;
using mica::alloc::Buffer;
using mica::test::Diary;
using mica::test::Noting;

static_assert(!std::is_copy_constructible_v<Buffer<float, Aligned>>);
static_assert(std::is_nothrow_move_constructible_v<Buffer<float, Aligned>>);
static_assert(mica::alloc::touchable<Aligned>(7) == 7 &&
              mica::alloc::touchable<mica::alloc::Counting>(7) == 0);

TEST_CASE("a buffer asks for its bytes and gives the same block and bytes back") {
  Diary diary;
  {
    auto buffer = Buffer<double, Noting>::make(Noting(diary), 33, 256);
    REQUIRE(buffer);
    CHECK(buffer->size() == 33);
    CHECK(diary.asked == 33 * sizeof(double));
    CHECK(reinterpret_cast<std::uintptr_t>(buffer->data()) % 256 == 0);
    for (double& value : buffer->span()) value = 1.5;
    CHECK((*buffer)[32] == 1.5);
    CHECK(diary.returned == 0);
  }
  CHECK(diary.returned == 33 * sizeof(double));
  CHECK(diary.returned_block == diary.block);
}

TEST_CASE("a buffer that does not fit is an empty answer") {
  CHECK_FALSE(Buffer<float, mica::test::Refusing>::make({}, 1));
  CHECK_FALSE(
      Buffer<float, Aligned>::make({}, std::numeric_limits<std::size_t>::max()));  // the product wraps
  CHECK_FALSE(Buffer<float, Aligned>::make(
      {}, std::numeric_limits<std::size_t>::max() / 4));  // larger than any object
  CHECK_FALSE(Buffer<std::uint16_t, Aligned>::make(
      {}, (std::size_t{1} << 63) / 2 + (1u << 20)));  // wraps a ptrdiff_t
}

TEST_CASE("a buffer of nothing asks nobody") {
  auto none = Buffer<float, mica::test::Refusing>::make({}, 0);
  REQUIRE(none);
  CHECK(none->empty());
  CHECK(none->span().empty());
}

TEST_CASE("moving a buffer moves the block and frees the one it replaces") {
  Diary first;
  Diary second;
  auto a = Buffer<int, Noting>::make(Noting(first), 10);
  auto b = Buffer<int, Noting>::make(Noting(second), 20);
  REQUIRE(a);
  REQUIRE(b);
  *a = std::move(*b);
  CHECK(first.returned == 40);
  CHECK(second.returned == 0);
  CHECK(a->size() == 20);
  CHECK(b->empty());

  Buffer<int, Noting> c(std::move(*a));
  CHECK(c.size() == 20);
  a.reset();
  b.reset();
  CHECK(second.returned == 0);
  Buffer<int, Noting>& same = c;
  c = std::move(same);
  CHECK(c.size() == 20);
  CHECK(second.returned == 0);
}

TEST_CASE("a buffer of an allocator that only counts has size and alignment") {
  mica::budget::Ledger ledger(1000);
  const mica::alloc::Counting counting(ledger, mica::budget::Account::logits);
  {
    auto buffer = Buffer<float, mica::alloc::Counting>::make(counting, 250, 4096);
    REQUIRE(buffer);
    CHECK((buffer->size() == 250 && buffer->span().empty()));
    CHECK(reinterpret_cast<std::uintptr_t>(buffer->data()) % 4096 == 0);
    CHECK(ledger.used(mica::budget::Account::logits) == 1000);
    CHECK_FALSE(Buffer<char, mica::alloc::Counting>::make(counting, 1));
  }
  CHECK(ledger.used() == 0);
}

}  // namespace buffer_test
