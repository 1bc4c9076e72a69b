// SPDX-License-Identifier: Apache-2.0

#include "mica/alloc/aligned.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

TEST_CASE("the heap gives blocks of every power of two, of odd sizes too") {
  mica::alloc::Aligned heap;
  for (std::size_t alignment = 1; alignment <= (std::size_t{2} << 20); alignment *= 2) {
    for (const std::size_t bytes : {1u, 3u, 64u, 4097u}) {
      CAPTURE(alignment);
      CAPTURE(bytes);
      std::byte* const block = heap.allocate(bytes, alignment);
      REQUIRE(block != nullptr);
      CHECK(reinterpret_cast<std::uintptr_t>(block) % alignment == 0);
      std::memset(block, 0xA5, bytes);
      heap.deallocate(block, bytes);
    }
  }
}

// The heaps of sanitizers abort where the C library refuses.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MICA_TEST_HEAP_ABORTS
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define MICA_TEST_HEAP_ABORTS
#endif
#endif

#ifndef MICA_TEST_HEAP_ABORTS

TEST_CASE("the heap refuses what no machine has") {
  mica::alloc::Aligned heap;
  CHECK(heap.allocate(std::numeric_limits<std::size_t>::max() / 2, 64) == nullptr);
  CHECK(heap.allocate(std::numeric_limits<std::size_t>::max(), 64) == nullptr);
}

#endif
