// SPDX-License-Identifier: Apache-2.0

#include "mica/io/spill_file.hpp"

#include "io/temporary_folder.hpp"
#include "mica/alloc/aligned.hpp"
#include "mica/alloc/buffer.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

namespace mica::test::spill_file_test {
namespace {

constexpr std::size_t block = io::SpillFile::alignment;

alloc::Buffer<std::byte, alloc::Aligned> blocks(std::size_t n, int value) {
  auto buffer = alloc::Buffer<std::byte, alloc::Aligned>::make({}, n * block, block);
  REQUIRE(buffer);
  std::fill_n(buffer->data(), buffer->size(), static_cast<std::byte>(value));
  return std::move(*buffer);
}

bool is(std::span<const std::byte> bytes, int value) {
  return std::all_of(bytes.begin(), bytes.end(),
                     [&](std::byte b) { return b == static_cast<std::byte>(value); });
}

}  // namespace

TEST_CASE("a spill file gives back what was written, at once or on its way") {
  const TemporaryFolder folder;
  for (const std::string& in : {folder.path(""), std::string()}) {
    CAPTURE(in);
    auto file = io::SpillFile::make(in);
    REQUIRE(file);
    CHECK(std::filesystem::is_empty(folder.path("")));  // it has no name
    const auto one = blocks(3, 1), two = blocks(2, 2);
    REQUIRE(file->write(100 * block, one.span()));
    REQUIRE(file->write(101 * block, two.span()));
    auto to = blocks(3, 9), next = blocks(2, 9);
    REQUIRE(file->read(100 * block, to.span()));
    CHECK(is(to.span().first(block), 1));
    CHECK(is(to.span().subspan(block), 2));
    io::SpillFile moved(std::move(*file));
    moved.begin_read(101 * block, next.span());
    REQUIRE(moved.finish_read());
    CHECK(is(next.span(), 2));
    CHECK(moved.finish_read());  // nothing is under way
    moved.begin_read(100 * block, to.span());
    moved.begin_read(99 * block, next.span());  // the first one ends before the second begins
    REQUIRE(moved.finish_read());
    CHECK(is(to.span().first(block), 1));
    CHECK(is(next.span().first(block), 0));  // a hole
    CHECK(is(next.span().subspan(block), 1));
  }
}

TEST_CASE("reads beyond the end, and folders that are not there, are answered") {
  CHECK_FALSE(io::SpillFile::make("/nowhere at all"));
  auto file = io::SpillFile::make();
  REQUIRE(file);
  auto to = blocks(2, 0);
  CHECK_FALSE(file->read(0, to.span()));
  file->begin_read(0, to.span());
  CHECK_FALSE(file->finish_read());
}

}  // namespace mica::test::spill_file_test
