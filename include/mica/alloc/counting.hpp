// SPDX-License-Identifier: Apache-2.0
//
// The allocator of plans: it books and allocates no memory, so that a dry run of the program is the plan.
#pragma once

#include "mica/alloc/concept.hpp"
#include "mica/budget/ledger.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>

namespace mica::alloc {

/// Books into a ledger and hands out one address that no process can touch. The ledger outlives every block.
class Counting {
 public:
  explicit Counting(budget::Ledger& ledger, budget::Account account) noexcept
      : ledger_(&ledger), account_(account) {}

  // Required by Allocator
  static constexpr bool dry = true;

  [[nodiscard]] std::byte* allocate(std::size_t bytes, std::size_t alignment) noexcept {
    if (alignment > untouchable) return nullptr;
    // The upper half of the address space belongs to the kernel: a stray access faults at once.
    return ledger_->book(account_, bytes) ? reinterpret_cast<std::byte*>(untouchable) : nullptr;
  }

  void deallocate(std::byte* /*block*/, std::size_t bytes) noexcept { ledger_->release(account_, bytes); }

  [[nodiscard]] budget::Ledger* ledger() const noexcept { return ledger_; }
  [[nodiscard]] Counting book_as(budget::Account account) const noexcept {
    return Counting(*ledger_, account);
  }

  // Specific to Counting
  [[nodiscard]] budget::Account account() const noexcept { return account_; }

 private:
  /// Its one bit is the highest, so it is aligned to everything.
  static constexpr std::uintptr_t untouchable = std::numeric_limits<std::uintptr_t>::max() / 2 + 1;

  budget::Ledger* ledger_;
  budget::Account account_;
};
static_assert(Allocator<Counting>);

}  // namespace mica::alloc
