// SPDX-License-Identifier: Apache-2.0

#include "mica/exec/detail/denormals.hpp"

#include "mica/exec/inline.hpp"
#include "mica/exec/team.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

namespace denormals_test {

namespace {

// Half of the smallest normal float: a denormal, unless denormals count as zero. volatile: computed now.
float half_of_smallest() {
  volatile float smallest = 0x1p-126f;
  volatile float half = 0.5f;
  return smallest * half;
}

// A denormal that was there before, doubled.
float twice_a_denormal() {
  volatile float denormal = 0x1p-130f;
  volatile float two = 2.0f;
  return denormal * two;
}

}  // namespace

#if defined(__SSE2__) || defined(__aarch64__)

TEST_CASE("denormals are flushed inside the scope and nowhere else") {
  CHECK(half_of_smallest() == 0x1p-127f);
  {
    const mica::exec::FlushDenormals flush;
    CHECK(mica::exec::FlushDenormals::active());
    CHECK(half_of_smallest() == 0.0f);
    CHECK(twice_a_denormal() == 0.0f);
  }
  CHECK_FALSE(mica::exec::FlushDenormals::active());
  CHECK(half_of_smallest() == 0x1p-127f);
  CHECK(twice_a_denormal() == 0x1p-129f);
}

TEST_CASE("a scope inside a scope leaves the outer one flushing") {
  const mica::exec::FlushDenormals outer;
  { const mica::exec::FlushDenormals inner; }
  CHECK(half_of_smallest() == 0.0f);
}

TEST_CASE("every worker of every executor flushes denormals, and the caller is as before afterwards") {
  std::vector<float> seen(64, 1.0f);
  const auto probe = [&](std::size_t task, std::size_t) {
    seen[task] = half_of_smallest() + twice_a_denormal();
  };
  mica::exec::Inline here;
  here.run(seen.size(), probe);
  CHECK(seen == std::vector<float>(64, 0.0f));
  CHECK(half_of_smallest() == 0x1p-127f);

  seen.assign(64, 1.0f);
  mica::exec::Team team(3);
  team.run(seen.size(), probe);
  CHECK(seen == std::vector<float>(64, 0.0f));
  CHECK(half_of_smallest() == 0x1p-127f);
}

#endif

}  // namespace denormals_test
