// SPDX-License-Identifier: Apache-2.0
//
// The version is written in CMakeLists.txt; everything else that names it must agree.

#include "mica/version.hpp"

#include <doctest/doctest.h>

#include <string>

TEST_CASE("the headers and the build agree about the version") {
  CHECK(mica::version == MICA_VERSION);
  CHECK(std::to_string(mica::version_major) + "." + std::to_string(mica::version_minor) + "." +
            std::to_string(mica::version_patch) ==
        mica::version);
}
