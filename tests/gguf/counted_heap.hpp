// SPDX-License-Identifier: Apache-2.0
//
// An operator new that counts, and refuses on request. It replaces that of the whole program: one file of a
// program includes this.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <new>

namespace mica::test {

struct Heap {
  std::size_t live = 0;  // bytes
  std::size_t peak = 0;
  std::size_t allocations = 0;
  std::size_t fails_at = std::numeric_limits<std::size_t>::max();  // the allocation that is refused, from 0
};
inline constinit thread_local Heap heap;

inline constexpr std::size_t heap_prefix =
    alignof(std::max_align_t);  // holds the size of the block behind it

/// The most that a call has allocated at one time.
template <class Call>
std::size_t peak_of(Call&& call) {
  const std::size_t before = heap.live;
  heap.peak = before;
  call();
  return heap.peak - before;
}

/// What opening a file may take beside four times its bytes.
inline constexpr std::size_t allowance = std::size_t{16} << 20;

}  // namespace mica::test

void* operator new(std::size_t bytes) {
  using mica::test::heap, mica::test::heap_prefix;
  if (heap.allocations++ == heap.fails_at) throw std::bad_alloc();
  void* const block = std::malloc(bytes + heap_prefix);
  if (block == nullptr) throw std::bad_alloc();
  *static_cast<std::size_t*>(block) = bytes;
  heap.live += bytes;
  heap.peak = std::max(heap.peak, heap.live);
  return static_cast<std::byte*>(block) + heap_prefix;
}

/// The sanitizers have one of their own, whose blocks the operator delete below does not know.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept try {
  return ::operator new(bytes);
} catch (const std::bad_alloc&) {
  return nullptr;
}

void operator delete(void* at) noexcept {
  using mica::test::heap, mica::test::heap_prefix;
  if (at == nullptr) return;
  void* const block = static_cast<std::byte*>(at) - heap_prefix;
  heap.live -= *static_cast<std::size_t*>(block);
  std::free(block);
}

void operator delete(void* at, std::size_t) noexcept { ::operator delete(at); }
