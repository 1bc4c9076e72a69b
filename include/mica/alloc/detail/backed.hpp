// SPDX-License-Identifier: Apache-2.0
//
// Blocks whose last bytes may be touched in a plan too, for records on which later allocations depend, such
// as the number of owners of a page.
//
//   | bytes, in a plan an address alone | backed bytes, in a plan of the heap |
#pragma once

#include "mica/alloc/aligned.hpp"
#include "mica/alloc/concept.hpp"

#include <cstddef>

namespace mica::alloc {

/// A block of A of which the last `backed` bytes may be touched whatever A is; null when A refuses.
/// The start of a dry block is aligned only where all of it is backed.
template <Allocator A>
[[nodiscard]] std::byte* allocate_backed(A& allocator, std::size_t bytes, std::size_t alignment,
                                         std::size_t backed) noexcept {
  std::byte* const block = allocator.allocate(bytes, alignment);
  if constexpr (A::dry) {
    if (block == nullptr) return nullptr;
    std::byte* const memory = Aligned().allocate(backed, alignment);
    if (memory != nullptr) return memory - (bytes - backed);
    allocator.deallocate(block, bytes);
    return nullptr;
  }
  return block;
}

/// Frees a block of allocate_backed().
template <Allocator A>
void deallocate_backed(A& allocator, std::byte* block, std::size_t bytes, std::size_t backed) noexcept {
  if constexpr (A::dry) Aligned().deallocate(block + (bytes - backed), backed);
  allocator.deallocate(block, bytes);
}

}  // namespace mica::alloc
