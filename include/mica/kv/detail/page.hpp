// SPDX-License-Identifier: Apache-2.0
//
// Blocks of memory with several owners. The address of its bytes identifies a page; the number of owners
// follows them:
//
//   | bytes of the page ...................... | owners |
#pragma once

#include "mica/alloc/concept.hpp"
#include "mica/alloc/detail/backed.hpp"
#include "mica/base/assert.hpp"

#include <cstddef>
#include <cstring>
#include <new>

namespace mica::kv {

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

  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

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
    if (--owners(page) == 0) alloc::deallocate_backed(allocator_, page, bytes_ + footer, footer);
  }

 private:
  static constexpr std::size_t footer = 64;

  [[nodiscard]] std::byte* take() noexcept {
    std::byte* const page =
        alloc::allocate_backed(allocator_, bytes_ + footer, alloc::default_alignment, footer);
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
