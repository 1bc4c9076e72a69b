// SPDX-License-Identifier: Apache-2.0

#include "archetype/executor.hpp"

#include <doctest/doctest.h>

namespace mica::test::executor_test {

TEST_CASE("tasks of the smallest executor count denormals as zero, and its caller does as before") {
  archetype::Executor executor;
  const bool before = exec::FlushDenormals::active();
  std::size_t ran = 0, flushing = 0;
  executor.run(3, [&](std::size_t, std::size_t) noexcept {
    ++ran;
    flushing += exec::FlushDenormals::active() ? 1 : 0;
  });
  CHECK(ran == 3);
  CHECK(flushing == 3);
  CHECK(exec::FlushDenormals::active() == before);
}

}  // namespace mica::test::executor_test
