// SPDX-License-Identifier: Apache-2.0

#include "mica/io/map.hpp"

#include "io/pages.hpp"
#include "io/temporary_folder.hpp"
#include "shared.hpp"

#include <algorithm>
#include <vector>
#include <unistd.h>

namespace mica::test::map_test {
namespace {

using io::MapAdvice;

TEST_CASE("a mapping shows the bytes of the file under every advice") {
  const TemporaryFolder folder;
  const auto bytes = numbered_bytes(3 * 4096 + 17);
  const io::File file = io::File::open(folder.file("numbers", bytes));
  for (const auto advice : {MapAdvice::lazy, MapAdvice::scattered, MapAdvice::sequential, MapAdvice::populate,
                            MapAdvice::locked}) {
    const io::Mapping mapping(file, advice);
    CHECK(std::ranges::equal(mapping.bytes(), bytes));
    mapping.prefetch(1, 5000);
    mapping.prefetch(bytes.size(), 0);
  }
}

TEST_CASE("scattered pages come alone, and what is forgotten leaves memory") {
  const TemporaryFolder folder;
  const auto bytes = numbered_bytes(600 * 4096);
  const io::File file = io::File::open(folder.file("numbers", bytes));
  ::fsync(file.descriptor());
  const io::Mapping mapping(file, MapAdvice::scattered);
  mapping.forget(file, 0, bytes.size());
  if (pages_there(mapping) == 600) {
    skipped("pages that come and go", "this file system is memory");
    return;
  }
  const auto touch = [&](std::size_t page) { return mapping.bytes()[page * 4096] == bytes[page * 4096]; };
  CHECK(pages_there(mapping) == 0);
  CHECK((touch(100) && touch(300) && touch(301)));
  CHECK(pages_there(mapping) == 3);
  mapping.forget(file, 290 * 4096 + 5, 11 * 4096);
  CHECK(pages_there(mapping) == 1);
  CHECK(touch(300));
}

TEST_CASE("an empty file maps to no bytes") {
  const TemporaryFolder folder;
  const io::File file = io::File::open(folder.file("empty", ""));
  const io::Mapping mapping(file, MapAdvice::populate);
  CHECK(mapping.bytes().empty());
}

TEST_CASE("a mapping outlives its file and keeps its place when it moves") {
  const TemporaryFolder folder;
  std::optional<io::File> file = io::File::open(folder.file("text", "mapped"));
  io::Mapping first(*file);
  file.reset();
  const std::byte* const at = first.bytes().data();
  io::Mapping second = std::move(first);
  CHECK(first.bytes().empty());
  CHECK(second.bytes().data() == at);
  CHECK(at[0] == std::byte{'m'});
}

}  // namespace
}  // namespace mica::test::map_test
