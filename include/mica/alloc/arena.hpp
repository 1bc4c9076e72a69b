// SPDX-License-Identifier: Apache-2.0
//
// Scratch of a step: one block, allocated once, handed out from the front and freed all at once.
//
//   base          used()                       peak()        size()
//   | a | b |pad| c |                             |             |
//                    ^ the next block starts here, aligned
#pragma once

#include "mica/alloc/aligned.hpp"
#include "mica/alloc/buffer.hpp"
#include "mica/alloc/concept.hpp"
#include "mica/base/assert.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

namespace mica::alloc {

/// Owns one block of A and hands it out through handles, in a few instructions and without a system call.
/// Handles point at the arena: it neither moves nor dies while a handle is in use. Not thread-safe.
template <Allocator A>
class Arena {
 public:
  /// The allocator of an arena. Freeing a block does nothing: its bytes are freed by reset() or rewind().
  class Handle : public Unbooked<Handle> {
   public:
    explicit Handle(Arena& arena) noexcept : arena_(&arena) {}  // as arena.handle()

    // Required by Allocator
    static constexpr bool dry = A::dry;
    [[nodiscard]] std::byte* allocate(std::size_t bytes, std::size_t alignment) noexcept {
      return arena_->take(bytes, alignment);
    }
    void deallocate(std::byte* /*block*/, std::size_t /*bytes*/) noexcept {}

   private:
    Arena* arena_;
  };

  /// An arena of `bytes`; empty when A refuses.
  [[nodiscard]] static std::optional<Arena> make(A allocator, std::size_t bytes,
                                                 std::size_t alignment = default_alignment) noexcept {
    auto block = Buffer<std::byte, A>::make(allocator, bytes, alignment);
    if (!block) return std::nullopt;
    return Arena(std::move(*block));
  }

  /// The handle for containers; a pointer.
  [[nodiscard]] Handle handle() noexcept { return Handle(*this); }

  /// Frees all blocks at once; none of them may be used any more.
  void reset() noexcept { used_ = 0; }

  /// Frees the blocks that were handed out since used() had this value.
  void rewind(std::size_t used) noexcept {
    MICA_ASSERT(used <= used_);
    used_ = used;
  }

  [[nodiscard]] std::size_t size() const noexcept { return block_.size(); }
  [[nodiscard]] std::size_t used() const noexcept { return used_; }  // bytes, padding included; for rewind()
  /// The maximum that was in use, padding included: the size that this arena needs.
  [[nodiscard]] std::size_t peak() const noexcept { return peak_; }

 private:
  explicit Arena(Buffer<std::byte, A> block) noexcept : block_(std::move(block)) {}

  [[nodiscard]] std::byte* take(std::size_t bytes, std::size_t alignment) noexcept {
    const auto base = reinterpret_cast<std::uintptr_t>(block_.data());
    const std::size_t padding = (alignment - ((base + used_) & (alignment - 1))) & (alignment - 1);
    const std::size_t left = block_.size() - used_;
    if (padding > left || bytes > left - padding) return nullptr;
    std::byte* const block = block_.data() + used_ + padding;
    used_ += padding + bytes;
    if (used_ > peak_) peak_ = used_;
    return block;
  }

  Buffer<std::byte, A> block_;
  std::size_t used_ = 0;
  std::size_t peak_ = 0;
};

static_assert(Allocator<Arena<Aligned>::Handle>);

}  // namespace mica::alloc
