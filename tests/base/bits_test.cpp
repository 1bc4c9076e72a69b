// SPDX-License-Identifier: Apache-2.0

#include "mica/base/bits.hpp"

#include <doctest/doctest.h>

#include <cstdint>

namespace mica::test::bits_test {

static_assert(checked_add(2, 3) == 5u && !checked_add(UINT64_MAX, 1) &&
              checked_add(UINT64_MAX, 0) == UINT64_MAX);
static_assert(checked_mul(1u << 31, 2) == std::uint64_t{1} << 32 && checked_mul(0, UINT64_MAX) == 0u);
static_assert(ceil_div(0u, 4u) == 0 && ceil_div(1u, 4u) == 1 && ceil_div(4u, 4u) == 1 &&
              ceil_div(5u, 4u) == 2);
static_assert(round_up(0u, 16u) == 0 && round_up(1u, 16u) == 16 && round_up(16u, 16u) == 16 &&
              round_up(17u, 16u) == 32);

TEST_CASE("a product that does not fit is empty, right at the edge") {
  CHECK(checked_mul(UINT64_MAX, 1) == UINT64_MAX);
  CHECK_FALSE(checked_mul(UINT64_MAX, 2));
  CHECK(checked_mul(UINT32_MAX, UINT32_MAX) == std::uint64_t{UINT32_MAX} * UINT32_MAX);
  CHECK_FALSE(checked_mul(std::uint64_t{1} << 32, std::uint64_t{1} << 32));
  CHECK(checked_mul(std::uint64_t{1} << 32, (std::uint64_t{1} << 32) - 1));
}

TEST_CASE("rounding up near the largest number does not wrap") {
  CHECK(ceil_div(UINT64_MAX, std::uint64_t{2}) == std::uint64_t{1} << 63);
  CHECK(ceil_div(UINT64_MAX, UINT64_MAX) == 1);
}

}  // namespace mica::test::bits_test
