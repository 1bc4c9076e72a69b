// SPDX-License-Identifier: Apache-2.0
//
// The budget as a decorator: bytes are booked before they are allocated, so the ceiling holds for any
// allocator.
#pragma once

#include "mica/alloc/aligned.hpp"
#include "mica/alloc/concept.hpp"
#include "mica/budget/ledger.hpp"

#include <cstddef>
#include <type_traits>

namespace mica::alloc {

/// Allocates from A what the ledger grants to one account. The ledger outlives every block.
/// Books the requested bytes; the overhead of A (a page's tail, a heap header) is not in the ledger.
template <Allocator A>
class Budgeted {
 public:
  /// inner: where the bytes come from; by default a new A.
  explicit Budgeted(budget::Ledger& ledger, budget::Account account, A inner) noexcept
      : inner_(inner), ledger_(&ledger), account_(account) {}
  explicit Budgeted(budget::Ledger& ledger,
                    budget::Account account) noexcept requires std::is_nothrow_default_constructible_v<A>
      : Budgeted(ledger, account, A{}) {}

  // Required by Allocator
  static constexpr bool dry = A::dry;

  [[nodiscard]] std::byte* allocate(std::size_t bytes, std::size_t alignment) noexcept {
    if (!ledger_->book(account_, bytes)) return nullptr;
    std::byte* const block = inner_.allocate(bytes, alignment);
    if (block == nullptr) ledger_->release(account_, bytes);
    return block;
  }

  void deallocate(std::byte* block, std::size_t bytes) noexcept {
    inner_.deallocate(block, bytes);  // before its books: others may book as soon as they are released
    ledger_->release(account_, bytes);
  }

  [[nodiscard]] budget::Ledger* ledger() const noexcept { return ledger_; }
  [[nodiscard]] Budgeted book_as(budget::Account account) const noexcept {
    return Budgeted(*ledger_, account, inner_);
  }

  // Specific to Budgeted
  [[nodiscard]] budget::Account account() const noexcept { return account_; }  // its blocks are booked there

 private:
  A inner_;
  budget::Ledger* ledger_;
  budget::Account account_;
};
static_assert(Allocator<Budgeted<Aligned>>);

}  // namespace mica::alloc
