// SPDX-License-Identifier: Apache-2.0
//
// Pages of memory with several owners; the last owner's release() frees a page. The address of its bytes
// identifies a page; the number of owners follows them:
//
//   | bytes of the page, in a plan an address alone | owners, in a plan of the heap |
#pragma once

#include "mica/alloc/aligned.hpp"
#include "mica/base/assert.hpp"

#include <cstddef>
#include <cstring>
#include <new>

namespace mica::kv {

/// A block of A of which the last `backed` bytes may be touched whatever A is; null when A refuses.
/// The start of a dry block is aligned only where all of it is backed.
template <Allocator A>
[[nodiscard]] std::byte* allocate_backed(A& allocator, std::size_t bytes, std::size_t alignment,
                                         std::size_t backed) noexcept {
  std::byte* const block = allocator.allocate(bytes, alignment);
  if constexpr (A::dry) {
    if (block == nullptr) return nullptr;
    std::byte* const memory = alloc::Aligned().allocate(backed, alignment);
    if (memory != nullptr) return memory - (bytes - backed);
    allocator.deallocate(block, bytes);
    return nullptr;
  }
  return block;
}

/// Frees a block of allocate_backed().
template <Allocator A>
void deallocate_backed(A& allocator, std::byte* block, std::size_t bytes, std::size_t backed) noexcept {
  if constexpr (A::dry) alloc::Aligned().deallocate(block + (bytes - backed), backed);
  allocator.deallocate(block, bytes);
}

/// Makes pages of one size and frees them with their last owner. Copies of an object share one allocator, so
/// pages may be passed between them. Not thread-safe.
template <Allocator A>
class Pages {
 public:
  using Allocator = A;
  using Page = std::byte*;
  [[nodiscard]] static std::byte* data(Page page) noexcept { return page; }

  /// bytes > 0, a multiple of 64.
  Pages(A allocator, std::size_t bytes) noexcept : allocator_(allocator), bytes_(bytes) {}

  /// A page of zeros with one owner, so that nothing of a former owner is in it; null when the allocator
  /// refuses.
  [[nodiscard]] std::byte* acquire() noexcept {
    std::byte* const page = take();
    if (page != nullptr) std::memset(page, 0, alloc::touchable<A>(bytes_));
    return page;
  }
  /// The same with the bytes of another page.
  [[nodiscard]] std::byte* copy(const std::byte* from) noexcept {
    std::byte* const page = take();
    if (page != nullptr) std::memcpy(page, from, alloc::touchable<A>(bytes_));
    return page;
  }
  /// One more owner.
  void share(std::byte* page) noexcept { ++owners(page); }
  [[nodiscard]] bool shared(std::byte* page) const noexcept { return owners(page) > 1; }
  /// Its only owner is about to write.
  void touch(std::byte* /*page*/) noexcept {}
  /// One owner less; memory is freed with the last.
  void release(std::byte* page) noexcept {
    MICA_ASSERT(owners(page) > 0);
    if (--owners(page) == 0) deallocate_backed(allocator_, page, bytes_ + footer, footer);
  }

 private:
  static constexpr std::size_t footer = 64;

  [[nodiscard]] std::byte* take() noexcept {
    std::byte* const page = allocate_backed(allocator_, bytes_ + footer, alloc::default_alignment, footer);
    if (page != nullptr) ::new (page + bytes_) std::size_t(1);
    return page;
  }
  [[nodiscard]] std::size_t& owners(std::byte* page) const noexcept {
    return *std::launder(reinterpret_cast<std::size_t*>(page + bytes_));
  }

  A allocator_;
  std::size_t bytes_;
};

}  // namespace mica::kv
