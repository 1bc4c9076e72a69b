// SPDX-License-Identifier: Apache-2.0
//
// The records of Tracked. A ledger limits and names accounts; statistics only count.
#pragma once

#include <atomic>
#include <cstddef>

namespace mica::alloc {

/// Counts of one or more Tracked allocators; safe from any thread.
class Statistics {
 public:
  Statistics() noexcept = default;
  Statistics(const Statistics&) = delete;
  Statistics& operator=(const Statistics&) = delete;

  [[nodiscard]] std::size_t current_bytes() const noexcept {
    return current_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::size_t peak_bytes() const noexcept { return peak_.load(std::memory_order_relaxed); }
  /// Allocated blocks.
  [[nodiscard]] std::size_t blocks() const noexcept { return blocks_.load(std::memory_order_relaxed); }
  /// All blocks that were allocated.
  [[nodiscard]] std::size_t allocations() const noexcept {
    return allocations_.load(std::memory_order_relaxed);
  }
  /// Refused requests.
  [[nodiscard]] std::size_t refusals() const noexcept { return refusals_.load(std::memory_order_relaxed); }

  void record_allocation(std::size_t bytes) noexcept {
    allocations_.fetch_add(1, std::memory_order_relaxed);
    blocks_.fetch_add(1, std::memory_order_relaxed);
    const std::size_t now = current_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    std::size_t seen = peak_.load(std::memory_order_relaxed);
    while (seen < now && !peak_.compare_exchange_weak(seen, now, std::memory_order_relaxed)) {
    }
  }
  void record_deallocation(std::size_t bytes) noexcept {
    blocks_.fetch_sub(1, std::memory_order_relaxed);
    current_.fetch_sub(bytes, std::memory_order_relaxed);
  }
  void record_refusal() noexcept { refusals_.fetch_add(1, std::memory_order_relaxed); }

 private:
  std::atomic<std::size_t> current_{0};
  std::atomic<std::size_t> peak_{0};
  std::atomic<std::size_t> blocks_{0};
  std::atomic<std::size_t> allocations_{0};
  std::atomic<std::size_t> refusals_{0};
};

}  // namespace mica::alloc
