// SPDX-License-Identifier: Apache-2.0
//
// Pages of the kernel, of 2 MiB where possible: weights and KV need few TLB entries, and freed memory returns
// to the system at once. Not for small blocks: each costs a system call and a whole page.
#pragma once

#include "mica/alloc/concept.hpp"
#include "mica/base/bits.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <sys/mman.h>
#include <unistd.h>

namespace mica::alloc {

/// Anonymous mappings, zeroed, advised to use huge pages. Stateless; safe from any thread.
/// Blocks of 2 MiB and more start on a 2 MiB boundary, unless the address space is too tight for that: then
/// they are plain pages. A block takes whole pages, so up to one page (4 KiB on x86-64) more than was asked.
class Huge : public Unbooked<Huge> {
 public:
  static constexpr std::size_t huge_page = std::size_t{2} << 20;  // bytes

  // Required by Allocator
  static constexpr bool dry = false;
  [[nodiscard]] std::byte* allocate(std::size_t bytes, std::size_t alignment) noexcept {
    // Leaves space for the rounding below; no mapping is that large.
    if (bytes > std::numeric_limits<std::size_t>::max() / 4) return nullptr;
    if (alignment > std::numeric_limits<std::size_t>::max() / 4) return nullptr;
    const std::size_t length = round_up(bytes, page());
    if (length < huge_page) return alignment <= page() ? map(length) : map_aligned(length, alignment);

    std::byte* block = map_aligned(length, alignment > huge_page ? alignment : huge_page);
    if (block == nullptr && alignment <= page()) block = map(length);
#ifdef MADV_HUGEPAGE
    // A refusal (huge pages disabled) leaves plain pages, which is what we fall back to.
    if (block != nullptr) ::madvise(block, length, MADV_HUGEPAGE);
#endif
    return block;
  }
  void deallocate(std::byte* block, std::size_t bytes) noexcept { ::munmap(block, round_up(bytes, page())); }

 private:
  [[nodiscard]] static std::size_t page() noexcept {
    static const auto size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    return size;
  }
  [[nodiscard]] static std::byte* map(std::size_t bytes) noexcept {
    void* const block = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return block == MAP_FAILED ? nullptr : static_cast<std::byte*>(block);
  }
  /// Maps more than needed and unmaps both ends.
  [[nodiscard]] static std::byte* map_aligned(std::size_t bytes, std::size_t alignment) noexcept {
    std::byte* const wide = map(bytes + alignment);
    if (wide == nullptr) return nullptr;
    const auto address = reinterpret_cast<std::uintptr_t>(wide);
    const std::size_t before = round_up(address, std::uintptr_t{alignment}) - address;
    const std::size_t after = alignment - before;
    if (before != 0) ::munmap(wide, before);
    if (after != 0) ::munmap(wide + before + bytes, after);
    return wide + before;
  }
};

static_assert(Allocator<Huge>);

}  // namespace mica::alloc
