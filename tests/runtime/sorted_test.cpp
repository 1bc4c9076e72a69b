// SPDX-License-Identifier: Apache-2.0

#include "mica_tools/measure/sorted.hpp"

#include <doctest/doctest.h>

namespace mica::test::sorted_test {

TEST_CASE("ranks lie between the numbers beside them") {
  const Sorted sorted({4, 1, 3, 2});
  CHECK(sorted.at(0) == 1);
  CHECK(sorted.at(1) == 4);
  CHECK(sorted.at(0.5) == doctest::Approx(2.5));
  CHECK(sorted.at(1.0 / 3) == doctest::Approx(2));
  CHECK(sorted.at(-1) == 1);
  CHECK(sorted.at(7) == 4);
  CHECK(Sorted({5}).at(0.3) == 5);
  CHECK(Sorted({}).at(0.5) == 0);
}

}  // namespace mica::test::sorted_test
