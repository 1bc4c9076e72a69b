// SPDX-License-Identifier: Apache-2.0
//
// expect: mica::Transformer: WithAllocator<...> needs a mica::Allocator (alloc/concept.hpp)

#include "mica/alloc/aligned.hpp"
#include "mica/arch/llama.hpp"
#include "mica/model/transformer.hpp"

class Mine {
 public:
  static constexpr bool dry = false;
  std::byte* allocate(std::size_t bytes, std::size_t alignment) noexcept {
    return heap_.allocate(bytes, alignment);
  }
  void deallocate(std::byte* block, std::size_t bytes) noexcept { heap_.deallocate(block, bytes); }
  mica::budget::Ledger* ledger() const noexcept { return heap_.ledger(); }
#ifdef MICA_FAIL
  Mine book_us(mica::budget::Account) const noexcept { return *this; }
#else
  Mine book_as(mica::budget::Account) const noexcept { return *this; }
#endif

 private:
  mica::alloc::Aligned heap_;
};

static_assert(sizeof(mica::Transformer<mica::arch::Llama, mica::WithAllocator<Mine>>) > 0);
