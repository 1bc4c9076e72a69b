// SPDX-License-Identifier: Apache-2.0
//
// The minimal Allocator: no default constructor, no books, nothing that the concept does not ask for.

#pragma once

#include "mica/alloc/concept.hpp"

#include <cstddef>
#include <cstdlib>

namespace mica::archetype {

/// The heap, counting the blocks that are alive.
class Allocator : public mica::alloc::Unbooked<Allocator> {
 public:
  explicit Allocator(std::size_t& blocks) noexcept : blocks_(&blocks) {}

  // Required by Allocator
  static constexpr bool dry = false;

  std::byte* allocate(std::size_t bytes, std::size_t alignment) noexcept {
    void* block = nullptr;
    if (::posix_memalign(&block, alignment, bytes) != 0) return nullptr;
    ++*blocks_;
    return static_cast<std::byte*>(block);
  }
  void deallocate(std::byte* block, std::size_t /*bytes*/) noexcept {
    --*blocks_;
    std::free(block);
  }

 private:
  std::size_t* blocks_;
};
static_assert(mica::Allocator<Allocator>);

}  // namespace mica::archetype
