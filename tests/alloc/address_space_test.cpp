// SPDX-License-Identifier: Apache-2.0

#include "mica/alloc/detail/address_space.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <limits>

namespace mica::test::address_space_test {

TEST_CASE("addresses get memory and lose it with its content") {
  const std::size_t page = alloc::AddressSpace::page();
  auto space = alloc::AddressSpace::make(std::size_t{1} << 40);  // more than any machine of a test has
  REQUIRE(space);
  CHECK(space->size() == std::size_t{1} << 40);
  const std::size_t far = std::size_t{1} << 39;
  REQUIRE(space->commit(far, 2 * page));
  std::byte* const at = space->data() + far;
  CHECK(at[2 * page - 1] == std::byte{0});
  std::memset(at, 42, 2 * page);
  space->give_back(far + page, page);
  CHECK(at[page - 1] == std::byte{42});
  REQUIRE(space->commit(far + page, page));
  CHECK(at[page] == std::byte{0});
  alloc::AddressSpace moved(std::move(*space));
  CHECK(space->data() == nullptr);
  CHECK(moved.data() + far == at);
}

TEST_CASE("a range that no address space has is refused, and none is nothing") {
  CHECK_FALSE(alloc::AddressSpace::make(std::numeric_limits<std::size_t>::max()));
  CHECK_FALSE(alloc::AddressSpace::make(std::size_t{1} << 60));
  const auto none = alloc::AddressSpace::make(0);
  REQUIRE(none);
  CHECK(none->size() == 0);
}

}  // namespace mica::test::address_space_test
