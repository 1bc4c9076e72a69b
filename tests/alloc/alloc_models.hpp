// SPDX-License-Identifier: Apache-2.0
//
// Allocators that only tests need.

#pragma once

#include "mica/alloc/aligned.hpp"
#include "mica/alloc/concept.hpp"

#include <cstddef>

namespace mica::test {

/// Never has anything.
struct Refusing : alloc::Unbooked<Refusing> {
  static constexpr bool dry = false;
  std::byte* allocate(std::size_t, std::size_t) noexcept { return nullptr; }
  void deallocate(std::byte*, std::size_t) noexcept {}
};
static_assert(Allocator<Refusing>);

/// Writes down what it was last asked for and given back.
struct Diary {
  std::size_t asked = 0;
  std::size_t alignment = 0;
  std::size_t returned = 0;
  std::byte* block = nullptr;
  std::byte* returned_block = nullptr;
};

/// The heap, with a diary.
class Noting : public alloc::Unbooked<Noting> {
 public:
  static constexpr bool dry = false;
  explicit Noting(Diary& diary) noexcept : diary_(&diary) {}
  std::byte* allocate(std::size_t bytes, std::size_t alignment) noexcept {
    diary_->asked = bytes;
    diary_->alignment = alignment;
    return diary_->block = alloc::Aligned{}.allocate(bytes, alignment);
  }
  void deallocate(std::byte* block, std::size_t bytes) noexcept {
    diary_->returned = bytes;
    diary_->returned_block = block;
    alloc::Aligned{}.deallocate(block, bytes);
  }

 private:
  Diary* diary_;
};
static_assert(Allocator<Noting>);

}  // namespace mica::test
