// SPDX-License-Identifier: Apache-2.0
//
// The order in which a product of one token reads weights that come from memory. Processors differ in what
// they read fastest, and one format differs from another, so the first products of a process try both orders
// in turns and time them. Both give the same bits. No Highway header.
#pragma once

#include "mica/format/concept.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace mica::kernel::highway {

enum class Reading : std::uint8_t {
  apart,     // asked for some KiB ahead, at two places in turns (ops-inl.hpp)
  in_order,  // each chunk is read from its beginning to its end before it is used; the core prefetches
};

/// Which order a format has on this machine. Any thread; what two threads count at the same time may be lost.
class ReadingChoice {
 public:
  /// Comparisons until the choice is made, and how many of them `in_order` has to win: 20 of 32 or more are
  /// chance in one of nine cases.
  static constexpr std::uint32_t max_comparisons = 32, needed = 20;

  [[nodiscard]] bool is_made() const noexcept {
    return comparisons_.load(std::memory_order_relaxed) >= max_comparisons;
  }
  /// The order to read in; Reading::apart until the choice is made.
  [[nodiscard]] Reading get() const noexcept {
    return is_made() && wins_.load(std::memory_order_relaxed) >= needed ? Reading::in_order : Reading::apart;
  }
  /// Counts the time of a byte in one order. One `in_order` is compared with the `apart` before it: so what
  /// other programs do to memory costs no more than that pair.
  void count(Reading reading, double seconds) noexcept {
    if (reading == Reading::apart) return apart_.store(seconds, std::memory_order_relaxed);
    const double apart = apart_.exchange(0, std::memory_order_relaxed);
    if (apart == 0 || is_made()) return;
    if (seconds < apart) wins_.fetch_add(1, std::memory_order_relaxed);
    comparisons_.fetch_add(1, std::memory_order_relaxed);
  }
  /// Makes the choice, or lets it be made again (empty): for tests and measurements.
  void set(std::optional<Reading> reading) noexcept {
    apart_.store(0, std::memory_order_relaxed);
    wins_.store(reading == Reading::in_order ? needed : 0, std::memory_order_relaxed);
    comparisons_.store(reading ? max_comparisons : 0, std::memory_order_relaxed);
  }

 private:
  std::atomic<double> apart_{0};  // seconds; 0: compared
  std::atomic<std::uint32_t> wins_{0}, comparisons_{0};
};

/// The choice of a format, one for the process.
template <WeightFormat F>
[[nodiscard]] ReadingChoice& reading_choice() noexcept {
  static ReadingChoice choice;
  return choice;
}

/// Matrices below this many bytes may lie in a cache, and are not timed.
inline constexpr std::size_t min_timed_matrix = std::size_t{1} << 20;
/// Panels that are read in one order: the rows of a task of one token (block/linear.hpp).
inline constexpr std::size_t timed_panels = 4;

/// Reads panels [p, end) of panel_bytes bytes by read(first, last, reading). As long as the choice is not
/// made, two times `timed_panels` are read apart and the next two in order; the second one of both is timed,
/// as the first one may have been asked for in the other order.
template <class Read>
void read_in_turns(ReadingChoice& choice, std::size_t p, std::size_t end, std::size_t panel_bytes,
                   const Read& read) noexcept {
  using Clock = std::chrono::steady_clock;
  while (p < end && !choice.is_made()) {
    const std::size_t turn = p / timed_panels, stop = std::min(end, (turn + 1) * timed_panels);
    const Reading reading = turn / 2 % 2 == 0 ? Reading::apart : Reading::in_order;
    const Clock::time_point begin = Clock::now();
    read(p, stop, reading);
    const std::chrono::duration<double> seconds = Clock::now() - begin;
    if (turn % 2 == 1 && stop - p == timed_panels)
      choice.count(reading, seconds.count() / static_cast<double>(timed_panels * panel_bytes));
    p = stop;
  }
  if (p < end) read(p, end, choice.get());
}

}  // namespace mica::kernel::highway
