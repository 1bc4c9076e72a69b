// SPDX-License-Identifier: Apache-2.0
#include "mica/kernel/highway.hpp"
#include "mica/kernel/highway/machine_options.hpp"

#include <doctest/doctest.h>
#include <hwy/targets.h>

#include <cstdint>

namespace mica::byte_dots_test {
namespace {

using kernel::highway::ByteDots;

#if defined(__AVXVNNI__) || defined(__ARM_FEATURE_DOTPROD)
constexpr int open_targets = 0;  // the flags settle it
#elif defined(__x86_64__) || defined(__aarch64__)
constexpr int open_targets = 1;
#else
constexpr int open_targets = 0;
#endif

TEST_CASE("one of the compiled targets leaves dots of bytes open, unless the flags settle it") {
  int open = 0;
  for (std::int64_t rest = kernel::highway::compiled_targets(); rest != 0; rest &= rest - 1)
    open += ByteDots::beside(hwy::TargetName(rest & -rest)) ? 1 : 0;
  CHECK(open == open_targets);
}

TEST_CASE("kernels use the dots of bytes that the machine has until told otherwise") {
  CHECK(ByteDots::used() == ByteDots::here());
  ByteDots::use(false);
  CHECK_FALSE(ByteDots::used());
  ByteDots::use(ByteDots::here());
  CHECK(ByteDots::used() == ByteDots::here());
}

}  // namespace
}  // namespace mica::byte_dots_test
