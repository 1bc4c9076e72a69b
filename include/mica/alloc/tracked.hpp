// SPDX-License-Identifier: Apache-2.0
//
// An allocator with statistics, for tests, benches and diagnosis.
#pragma once

#include "mica/alloc/aligned.hpp"
#include "mica/alloc/concept.hpp"
#include "mica/alloc/statistics.hpp"

#include <cstddef>
#include <type_traits>

namespace mica::alloc {

/// Allocates from A and records every block. The statistics outlive every block.
template <Allocator A>
class Tracked {
 public:
  explicit Tracked(Statistics& statistics, A inner) noexcept : inner_(inner), statistics_(&statistics) {}
  explicit Tracked(Statistics& statistics) noexcept requires std::is_nothrow_default_constructible_v<A>
      : Tracked(statistics, A{}) {}

  // Required by Allocator
  static constexpr bool dry = A::dry;

  [[nodiscard]] std::byte* allocate(std::size_t bytes, std::size_t alignment) noexcept {
    std::byte* const block = inner_.allocate(bytes, alignment);
    block != nullptr ? statistics_->record_allocation(bytes) : statistics_->record_refusal();
    return block;
  }

  void deallocate(std::byte* block, std::size_t bytes) noexcept {
    inner_.deallocate(block, bytes);
    statistics_->record_deallocation(bytes);
  }

  [[nodiscard]] budget::Ledger* ledger() const noexcept { return inner_.ledger(); }
  [[nodiscard]] Tracked book_as(budget::Account account) const noexcept {
    return Tracked(*statistics_, inner_.book_as(account));
  }

  // Specific to Tracked
  [[nodiscard]] const Statistics& statistics() const noexcept { return *statistics_; }

 private:
  A inner_;
  Statistics* statistics_;
};
static_assert(Allocator<Tracked<Aligned>>);

}  // namespace mica::alloc
