// SPDX-License-Identifier: Apache-2.0

#include "faults/faults.hpp"
#include "io/temporary_folder.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstdlib>
#include <string>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace mica::test::interposed_test {

using namespace faults;

TEST_CASE("the call that was named fails once, or with all that follow, and no other does") {
  const TemporaryFolder folder;
  const std::string path = folder.file("a", "0123456789");
  const auto opened = [&](const Fault& fault) {
    std::string results;
    const Armed armed(fault);
    for (int i = 0; i < 4; ++i) {
      const int fd = ::open(path.c_str(), O_RDONLY);
      results += fd < 0 ? '-' : '+';
      if (fd >= 0) ::close(fd);
    }
    return results;
  };
  CHECK(opened({.calls = open, .at = 2}) == "+-++");
  CHECK(opened({.calls = open, .at = 2, .for_ever = true}) == "+---");
  CHECK(opened({.calls = open, .at = 5}) == "++++");
  CHECK_FALSE(Armed::struck());
  CHECK(opened({.calls = read | write}) == "++++");
}

TEST_CASE("half of the bytes are read, and memory that is refused is a null pointer") {
  const TemporaryFolder folder;
  const std::string path = folder.file("a", "0123456789");
  const int fd = ::open(path.c_str(), O_RDONLY);
  std::array<char, 10> bytes{};
  {
    const Armed armed({.calls = read, .at = 1, .effect = Effect::part});
    CHECK(::pread(fd, bytes.data(), 10, 0) == 5);
    CHECK(::pread(fd, bytes.data(), 10, 0) == 10);
  }
  ::close(fd);
  void* volatile refused = nullptr;
  void* volatile given = nullptr;
  {
    const Armed armed({.calls = memory});
    refused = std::malloc(10);
    given = std::malloc(10);
  }
  CHECK(refused == nullptr);
  CHECK(given != nullptr);
  CHECK(Armed::struck());
  std::free(given);
}

TEST_CASE("a block, a mapping and a file that stay are seen") {
  const Held before = Held::now();
  void* volatile block = std::malloc(10);
  CHECK(Held::now().blocks == before.blocks + 1);
  std::free(block);
  const int fd = ::open("/dev/null", O_RDONLY);
  CHECK(Held::now().files == before.files + 1);
  ::close(fd);
  void* const mapped = ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(Held::now().mapped_bytes == before.mapped_bytes + 4096);
  ::munmap(mapped, 4096);
  CHECK_FALSE(Held::now().more_than(before));
}

}  // namespace mica::test::interposed_test
