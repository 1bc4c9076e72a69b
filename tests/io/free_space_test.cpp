// SPDX-License-Identifier: Apache-2.0

#include "io/temporary_folder.hpp"
#include "mica_tools/write/disk.hpp"

#include <doctest/doctest.h>

namespace mica::test::free_space_test {
namespace {

constexpr std::uint64_t exbibyte = std::uint64_t{1} << 60;

TEST_CASE("a file larger than the disk is refused with both numbers, a small one is not") {
  const TemporaryFolder folder;
  const std::string path = folder.path("large");
  CHECK_NOTHROW(io::require_free_space(path, 1));
  CHECK_THROWS_WITH_AS(io::require_free_space(path, exbibyte),
                       doctest::Contains("needs 1152921504606846976 bytes, and the disk has "), Error);
}

TEST_CASE("devices and folders that are not there are passed: writing will tell") {
  const TemporaryFolder folder;
  CHECK_NOTHROW(io::require_free_space("/dev/null", exbibyte));
  CHECK_NOTHROW(io::require_free_space(folder.path("missing/file"), exbibyte));
}

}  // namespace
TEST_CASE("a disk tells what it has free, of folders and of what is not there yet") {
  const TemporaryFolder folder;
  for (const std::string& path :
       {folder.path(""), folder.path("new"), std::string("new"), std::string(".")}) {
    CAPTURE(path);
    REQUIRE(io::free_space(path));
    CHECK(*io::free_space(path) > 0);
  }
  CHECK_FALSE(io::free_space(folder.path("none/new")));
}

}  // namespace mica::test::free_space_test
