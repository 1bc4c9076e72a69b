// SPDX-License-Identifier: Apache-2.0
#include "mica/kernel/highway/instruction_sets.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

namespace mica::instruction_sets_test {
namespace {

using namespace kernel::highway;

bool knows(const std::vector<InstructionSet>& sets, std::string_view name) {
  return std::any_of(sets.begin(), sets.end(), [&](const InstructionSet& set) { return set.name == name; });
}

TEST_CASE("a target has one name, or two where something stands beside it, the better one first") {
  for (std::int64_t rest = HWY_TARGETS; rest != 0; rest &= rest - 1) {
    const std::string name = hwy::TargetName(rest & -rest);
    CAPTURE(name);
    const auto sets = instruction_sets(rest & -rest, Beside::all);
    CHECK(sets.size() == 1u + (ByteDots::beside(name) ? 1 : 0) + (MatrixUnit::beside(name) ? 1 : 0));
    CHECK(sets.back().name == name);
    CHECK_FALSE(sets.back().byte_dots);
    CHECK_FALSE(sets.back().matrix_unit);
    CHECK(sets.front().byte_dots == ByteDots::beside(name));
    CHECK(sets.front().matrix_unit == MatrixUnit::beside(name));
  }
}

TEST_CASE("kernels use the matrix unit that the machine has until told otherwise") {
  CHECK(MatrixUnit::used() == MatrixUnit::here());
  CHECK(knows(instruction_sets(), MatrixUnit::name) == MatrixUnit::here());
  MatrixUnit::use(false);
  CHECK_FALSE(knows(instruction_sets(HWY_TARGETS, Beside::used), MatrixUnit::name));
  MatrixUnit::use(MatrixUnit::here());
  CHECK(MatrixUnit::used() == MatrixUnit::here());
}

}  // namespace
}  // namespace mica::instruction_sets_test
