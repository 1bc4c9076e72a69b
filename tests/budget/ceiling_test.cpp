// SPDX-License-Identifier: Apache-2.0

#include "mica/budget/limits.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>

namespace mica::test::ceiling_test {
namespace {

using budget::Ceiling, budget::MemoryLimits;

constexpr std::uint64_t mib = std::uint64_t{1} << 20;

MemoryLimits caged(std::uint64_t left) {
  MemoryLimits limits;
  limits.installed = 8192 * mib;
  limits.available = 6000 * mib;
  limits.cgroup = 300 * mib;
  limits.cgroup_left = left;
  return limits;
}

}  // namespace

TEST_CASE("of what is asked for and what limits leave, the smaller number counts") {
  const Ceiling more = budget::ceiling_of(400 * mib, caged(293 * mib));
  CHECK(more.bytes == 293 * mib);
  CHECK(more.lowered());
  CHECK(budget::text(more) == "400.0 MiB is more than the control group leaves; 293.0 MiB count");
  const Ceiling less = budget::ceiling_of(200 * mib, caged(293 * mib));
  CHECK(less.bytes == 200 * mib);
  CHECK_FALSE(less.lowered());
  const Ceiling equal = budget::ceiling_of(293 * mib, caged(293 * mib));
  CHECK(equal.bytes == 293 * mib);
  CHECK_FALSE(equal.lowered());
}

TEST_CASE("a number is a number, also 0, and none is what limits leave") {
  CHECK(budget::ceiling_of(0, caged(293 * mib)).bytes == 0);
  const Ceiling none = budget::ceiling_of({}, caged(293 * mib));
  CHECK(none.bytes == 293 * mib);
  CHECK_FALSE(none.lowered());
  CHECK(budget::ceiling_of(std::numeric_limits<std::uint64_t>::max(), caged(0)).bytes == 0);
  CHECK(budget::ceiling_of({}, MemoryLimits()).bytes == MemoryLimits::unlimited);
}

TEST_CASE("every limit counts, and is named") {
  MemoryLimits limits = caged(500 * mib);
  limits.address_space = 100 * mib;
  CHECK(budget::text(budget::ceiling_of(400 * mib, limits)) ==
        "400.0 MiB is more than RLIMIT_AS leaves; 100.0 MiB count");
  limits = {};
  limits.installed = 8192 * mib;
  limits.available = 6000 * mib;
  CHECK(budget::text(budget::ceiling_of(7000 * mib, limits)) ==
        "6.8 GiB is more than the machine's memory leaves; 5.9 GiB count");
}

TEST_CASE("limits without bytes that go elsewhere leave as many fewer") {
  const MemoryLimits less = caged(293 * mib).without(100 * mib);
  CHECK(less.usable() == 193 * mib);
  CHECK(less.address_space == MemoryLimits::unlimited);
  CHECK(caged(293 * mib).without(400 * mib).usable() == 0);
}

}  // namespace mica::test::ceiling_test
