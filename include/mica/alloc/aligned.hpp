// SPDX-License-Identifier: Apache-2.0
//
// The heap, with alignment.
#pragma once

#include "mica/alloc/concept.hpp"

#include <cstddef>
#include <cstdlib>

namespace mica::alloc {

/// Blocks of the C library's heap. Stateless; safe from any thread.
class Aligned : public Unbooked<Aligned> {
 public:
  // Required by Allocator
  static constexpr bool dry = false;

  [[nodiscard]] std::byte* allocate(std::size_t bytes, std::size_t alignment) noexcept {
    if (alignment < sizeof(void*)) alignment = sizeof(void*);
    void* block = nullptr;
    return ::posix_memalign(&block, alignment, bytes) == 0 ? static_cast<std::byte*>(block) : nullptr;
  }

  void deallocate(std::byte* block, std::size_t /*bytes*/) noexcept { std::free(block); }
};
static_assert(Allocator<Aligned>);

}  // namespace mica::alloc
