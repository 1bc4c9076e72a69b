// SPDX-License-Identifier: Apache-2.0
//
// The first tasks of one worker in a run. Their owner takes them from the front, other workers from the back.
#pragma once

#include "mica/exec/partition.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace mica::exec::detail {

/// Tasks [begin, end) not yet taken, in one word, so that one comparison guards both ends; on cache lines of
/// its own. Both bounds are below 2^32.
class alignas(128) TaskRange {
 public:
  /// A worker that takes from the range sees everything written before.
  void give(Range range) noexcept { left_.store(word_of(range), std::memory_order_release); }

  /// Some tasks for the owner, or for another worker; empty: none remain.
  [[nodiscard]] Range take_front() noexcept {
    return take([](Range left, std::size_t n) { return Range{left.begin, left.begin + n}; });
  }
  [[nodiscard]] Range take_back() noexcept {
    return take([](Range left, std::size_t n) { return Range{left.end - n, left.end}; });
  }

 private:
  // A sixteenth of the remaining tasks: few pieces of many short tasks, and single tasks at the end.
  static constexpr std::size_t pieces = 16;

  [[nodiscard]] static std::uint64_t word_of(Range range) noexcept {
    return std::uint64_t{range.begin} << 32 | std::uint64_t{range.end};
  }

  template <class Cut>
  [[nodiscard]] Range take(Cut&& cut) noexcept {
    std::uint64_t word = left_.load(std::memory_order_relaxed);
    for (;;) {
      const Range left{word >> 32, word & 0xffffffff};
      if (left.empty()) return {};
      const Range piece = cut(left, std::max<std::size_t>(1, left.size() / pieces));
      const bool at_front = piece.begin == left.begin;
      const Range rest = at_front ? Range{piece.end, left.end} : Range{left.begin, piece.begin};
      if (left_.compare_exchange_weak(word, word_of(rest), std::memory_order_acquire,
                                      std::memory_order_relaxed)) {
        return piece;
      }
    }
  }

  std::atomic<std::uint64_t> left_{0};
};

}  // namespace mica::exec::detail
