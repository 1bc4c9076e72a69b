// SPDX-License-Identifier: Apache-2.0
//
// A disk that is measured is read, and what cannot be measured is said.

#include "mica_tools/measure/disk_probe.hpp"

#include "io/temporary_folder.hpp"
#include "mica/alloc/buffer.hpp"
#include "mica/alloc/huge.hpp"
#include "mica/base/error.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace mica::test::disk_probe_test {
namespace {

auto probe_memory() {
  auto memory = alloc::Buffer<std::byte, alloc::Huge>::make({}, io::DiskProbe::memory_bytes);
  REQUIRE(memory);
  return memory;
}

}  // namespace

TEST_CASE("a disk has a speed in order and another one scattered, or is refused by name") {
  const TemporaryFolder folder;
  const io::File file =
      io::File::open(folder.file("large", std::vector<std::byte>((std::size_t{9} << 20) + 5)));
  auto memory = probe_memory();
  try {
    const io::DiskSpeed speed = io::DiskProbe(file, memory->span()).measure(0.01);
    CHECK(speed.in_order > 0);
    CHECK(speed.scattered > 0);
  } catch (const Error& error) {  // a file system without direct reads
    CHECK(error.code() == ErrorCode::unsupported);
    CHECK(std::string(error.what()).find(file.path()) != std::string::npos);
  }
}

TEST_CASE("a file that is too small to measure its disk is refused with the numbers") {
  const TemporaryFolder folder;
  const io::File file = io::File::open(folder.file("small", std::vector<std::byte>(1000)));
  auto memory = probe_memory();
  try {
    static_cast<void>(io::DiskProbe(file, memory->span()));
    FAIL("was measured");
  } catch (const Error& error) {
    const std::string text = error.what();
    if (error.code() == ErrorCode::unsupported) return;  // a file system without direct reads
    CHECK(error.code() == ErrorCode::usage);
    CHECK(text.find("1000 bytes") != std::string::npos);
    CHECK(text.find("4194304") != std::string::npos);
  }
}

}  // namespace mica::test::disk_probe_test
