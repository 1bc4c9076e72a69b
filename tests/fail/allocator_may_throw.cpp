// SPDX-License-Identifier: Apache-2.0
//
// expect: mica::Transformer: WithAllocator<...> needs a mica::Allocator (alloc/concept.hpp)

#include "mica/arch/llama.hpp"
#include "mica/model/transformer.hpp"

struct Mine : mica::alloc::Unbooked<Mine> {
  static constexpr bool dry = false;
#ifdef MICA_FAIL
  std::byte* allocate(std::size_t bytes, std::size_t) { return new std::byte[bytes]; }
#else
  std::byte* allocate(std::size_t, std::size_t) noexcept { return nullptr; }
#endif
  void deallocate(std::byte*, std::size_t) noexcept {}
};

static_assert(sizeof(mica::Transformer<mica::arch::Llama, mica::WithAllocator<Mine>>) > 0);
