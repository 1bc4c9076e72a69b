// SPDX-License-Identifier: Apache-2.0
//
// The allocator of plans: it books and allocates no memory, so that a dry run of the program is the plan.
#pragma once

#include "mica/alloc/budgeted.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>

namespace mica::alloc {

/// Hands out one address in the upper half of the address space, the kernel's: a stray access faults at once.
class Untouchable : public Unbooked<Untouchable> {
 public:
  // Required by Allocator
  static constexpr bool dry = true;
  [[nodiscard]] std::byte* allocate(std::size_t /*bytes*/, std::size_t alignment) noexcept {
    return alignment > address ? nullptr : reinterpret_cast<std::byte*>(address);
  }
  void deallocate(std::byte* /*block*/, std::size_t /*bytes*/) noexcept {}

 private:
  /// Its one bit is the highest, so it is aligned to everything.
  static constexpr std::uintptr_t address = std::numeric_limits<std::uintptr_t>::max() / 2 + 1;
};

/// Books into a ledger, which outlives every block.
using Counting = Budgeted<Untouchable>;
static_assert(Allocator<Counting>);

}  // namespace mica::alloc
