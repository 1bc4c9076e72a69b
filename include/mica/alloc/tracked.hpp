// SPDX-License-Identifier: Apache-2.0
//
// An allocator with statistics, for tests, benches and diagnosis. A ledger limits and names accounts;
// statistics only count.
#pragma once

#include "mica/alloc/aligned.hpp"
#include "mica/alloc/concept.hpp"

#include <atomic>
#include <cstddef>
#include <type_traits>

namespace mica::alloc {

/// Counts of one or more Tracked allocators; safe from any thread.
class Statistics {
 public:
  Statistics() noexcept = default;
  Statistics(const Statistics&) = delete;
  Statistics& operator=(const Statistics&) = delete;

  [[nodiscard]] std::size_t current_bytes() const noexcept { return current_.load(relaxed); }  // requested
  [[nodiscard]] std::size_t peak_bytes() const noexcept { return peak_.load(relaxed); }  // at one moment
  [[nodiscard]] std::size_t blocks() const noexcept { return blocks_.load(relaxed); }    // not yet freed
  [[nodiscard]] std::size_t allocations() const noexcept { return allocations_.load(relaxed); }  // ever
  [[nodiscard]] std::size_t refusals() const noexcept { return refusals_.load(relaxed); }        // requests

  /// Tracked calls these, each once for a block or a refusal.
  void record_allocation(std::size_t bytes) noexcept {
    allocations_.fetch_add(1, relaxed);
    blocks_.fetch_add(1, relaxed);
    const std::size_t now = current_.fetch_add(bytes, relaxed) + bytes;
    std::size_t seen = peak_.load(relaxed);
    while (seen < now && !peak_.compare_exchange_weak(seen, now, relaxed)) {
    }
  }
  void record_deallocation(std::size_t bytes) noexcept {
    blocks_.fetch_sub(1, relaxed);
    current_.fetch_sub(bytes, relaxed);
  }
  void record_refusal() noexcept { refusals_.fetch_add(1, relaxed); }

 private:
  static constexpr auto relaxed = std::memory_order_relaxed;

  std::atomic<std::size_t> current_{0};
  std::atomic<std::size_t> peak_{0};
  std::atomic<std::size_t> blocks_{0};
  std::atomic<std::size_t> allocations_{0};
  std::atomic<std::size_t> refusals_{0};
};

/// Allocates from A and records every block. The statistics outlive every block.
template <Allocator A>
class Tracked {
 public:
  /// inner: where the bytes come from; by default a new A.
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

 private:
  A inner_;
  Statistics* statistics_;
};
static_assert(Allocator<Tracked<Aligned>>);

}  // namespace mica::alloc
