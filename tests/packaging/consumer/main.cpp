// SPDX-License-Identifier: Apache-2.0
//
// The consumer: an allocator policy of its own, under the library's concept.

#include "mica/alloc/aligned.hpp"
#include "mica/alloc/buffer.hpp"

#include <cstdio>

struct Capped {
  static constexpr bool dry = false;
  static constexpr std::size_t largest = 4096;
  std::byte* allocate(std::size_t bytes, std::size_t alignment) noexcept {
    return bytes <= largest ? mica::alloc::Aligned{}.allocate(bytes, alignment) : nullptr;
  }
  void deallocate(std::byte* block, std::size_t bytes) noexcept {
    mica::alloc::Aligned{}.deallocate(block, bytes);
  }
};
static_assert(mica::Allocator<Capped>);

int main() {
  const bool small = mica::alloc::Buffer<float, Capped>::make({}, 100).has_value();
  const bool large = mica::alloc::Buffer<float, Capped>::make({}, 100000).has_value();
  std::puts(small && !large ? "the policy was used" : "the policy was not used");
  return small && !large ? 0 : 1;
}
