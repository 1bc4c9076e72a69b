// SPDX-License-Identifier: Apache-2.0
//
// One of two units that include every header. That they link into one program is the test.

#include "every_header.hpp"

#include <doctest/doctest.h>

const char* version_seen_by_other_unit();

TEST_CASE("two units that include everything link and share what they name") {
  CHECK(version_seen_by_other_unit() == mica::version.data());
}
