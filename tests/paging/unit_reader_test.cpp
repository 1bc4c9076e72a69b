// SPDX-License-Identifier: Apache-2.0
//
// A file that cannot be read any more is named, with the byte and the reason.

#include "mica/paging/unit_reader.hpp"

#include "io/temporary_folder.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace mica::test::unit_reader_test {
namespace {

constexpr std::size_t block = paging::UnitReader::alignment;

struct Free {
  void operator()(void* at) const { std::free(at); }
};

/// A reader of one file, the memory it reads into, and the errors that it logs.
struct Fixture {
  TemporaryFolder folder;
  std::vector<std::byte> bytes = numbered_bytes(10 * block - 100);
  std::string path = folder.file("weights", bytes);
  std::vector<gguf::Source> sources = [this] {
    std::vector<gguf::Source> all;
    all.emplace_back(io::File::open(path));
    return all;
  }();
  std::vector<std::string> errors;
  paging::UnitReader reader{sources,
                            {[](void* context, LogLevel level, std::string_view message) {
                               if (level != LogLevel::error) return;
                               static_cast<Fixture*>(context)->errors.emplace_back(message);
                             },
                             this}};
  std::unique_ptr<void, Free> memory{std::aligned_alloc(block, 10 * block)};

  /// Reads blocks [first, first + count); cuts the file to `size` bytes before.
  bool read(std::size_t first, std::size_t count) {
    const std::array byte_ranges = {paging::ByteRange{0, first * block, count * block}};
    std::array reads = {paging::UnitRead{byte_ranges, static_cast<std::byte*>(memory.get())}};
    reader.begin(reads, 0);
    return reader.finish(reads, 0);
  }
};

}  // namespace

TEST_CASE("a file that was cut while it was in use is named with the byte that is missing") {
  Fixture f;
  REQUIRE(f.read(8, 2));
  CHECK(f.errors.empty());
  std::filesystem::resize_file(f.path, 5 * block);
  CHECK(f.read(3, 2));
  CHECK(!f.read(4, 2));
  REQUIRE(f.errors.size() == 1);
  CHECK(f.errors[0] == join(f.path, ": reading ", block, " bytes of weights failed at byte ", 5 * block,
                            ": the file became shorter while it was in use, it had ", f.bytes.size(),
                            " bytes"));
  CHECK(!f.read(9, 1));
  CHECK(f.errors.size() == 2);  // another unit, another sentence
  CHECK(f.read(0, 1));
}

TEST_CASE("a read that the system refuses is named with what it says") {
  Fixture f;
  const int nowhere = ::open(f.folder.path("").c_str(), O_RDONLY | O_DIRECTORY);
  REQUIRE(nowhere >= 0);
  // The reader's own descriptors become those of a folder, which cannot be read.
  for (int fd = 3; fd < 64; ++fd) {
    struct ::stat status {};
    if (fd != nowhere && ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
        static_cast<std::uint64_t>(status.st_ino) == f.sources[0].file()->identity().inode)
      ::dup2(nowhere, fd);
  }
  CHECK(!f.read(0, 1));
  REQUIRE(f.errors.size() == 1);
  CHECK(f.errors[0] ==
        join(f.path, ": reading ", block, " bytes of weights failed at byte 0: Is a directory"));
  ::close(nowhere);
}

}  // namespace mica::test::unit_reader_test
