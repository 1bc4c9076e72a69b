// SPDX-License-Identifier: Apache-2.0

#include "mica/alloc/huge.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace huge_test {

using mica::alloc::Huge;

namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

bool aligned_to(const std::byte* block, std::size_t alignment) {
  return reinterpret_cast<std::uintptr_t>(block) % alignment == 0;
}

// Whether the page at `block` is mapped.
bool mapped(std::byte* block) {
  unsigned char residency = 0;
  return ::mincore(block, 1, &residency) == 0;
}

}  // namespace

TEST_CASE("large blocks start on a huge page, read zero and can be written to their last byte") {
  Huge huge;
  for (const std::size_t bytes : {2 * mib, 2 * mib + 1, 5 * mib - 3}) {
    std::byte* const block = huge.allocate(bytes, 64);
    REQUIRE(block != nullptr);
    CHECK(aligned_to(block, Huge::huge_page));
    CHECK(block[0] == std::byte{0});
    CHECK(block[bytes - 1] == std::byte{0});
    block[0] = std::byte{1};
    block[bytes - 1] = std::byte{1};
    huge.deallocate(block, bytes);
  }
}

TEST_CASE("small blocks take whole plain pages, aligned as asked") {
  Huge huge;
  for (const std::size_t alignment : {std::size_t{1}, std::size_t{4096}, 64 * 1024ul, 4 * mib}) {
    std::byte* const block = huge.allocate(5000, alignment);
    REQUIRE(block != nullptr);
    CHECK(aligned_to(block, alignment));
    block[4999] = std::byte{7};
    huge.deallocate(block, 5000);
  }
}

TEST_CASE("a block given back is no longer mapped, and nothing is left beside it") {
  Huge huge;
  constexpr std::size_t bytes = 3 * mib;
  std::byte* const block = huge.allocate(bytes, 64);
  REQUIRE(block != nullptr);
  REQUIRE(mapped(block));
  REQUIRE(mapped(block + bytes - 4096));
  huge.deallocate(block, bytes);
  CHECK_FALSE(mapped(block));
  CHECK_FALSE(mapped(block + bytes - 4096));
}

TEST_CASE("impossible sizes and alignments are refused, not rounded to nothing") {
  Huge huge;
  CHECK(huge.allocate(std::numeric_limits<std::size_t>::max(), 64) == nullptr);
  CHECK(huge.allocate(std::numeric_limits<std::size_t>::max() / 4 - 1, 64) == nullptr);
  CHECK(huge.allocate(64, std::size_t{1} << 63) == nullptr);
}

#if defined(__linux__)

namespace {

// In a child whose address space has room for 8 MiB but not for the 10 MiB that alignment takes: 0 when a plain block
// comes out and works.
int allocate_in_tight_space() {
  unsigned long pages = 0;
  std::FILE* const statm = std::fopen("/proc/self/statm", "r");
  if (statm == nullptr || std::fscanf(statm, "%lu", &pages) != 1) return 2;
  std::fclose(statm);
  const rlim_t limit = pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + 9 * mib;
  const rlimit tight{limit, limit};
  if (::setrlimit(RLIMIT_AS, &tight) != 0) return 2;
  Huge huge;
  std::byte* const block = huge.allocate(8 * mib, 64);
  if (block == nullptr) return 1;
  block[8 * mib - 1] = std::byte{1};
  if (huge.allocate(8 * mib, 64) != nullptr) return 3;  // and the next one does not fit at all
  huge.deallocate(block, 8 * mib);
  return 0;
}

}  // namespace

TEST_CASE("where the address space is too tight to align, plain pages serve") {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) ::_exit(allocate_in_tight_space());
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

#endif

}  // namespace huge_test
