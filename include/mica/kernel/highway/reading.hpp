// SPDX-License-Identifier: Apache-2.0
//
// The order in which a product of one token reads weights that come from memory. Processors differ in what
// they read fastest, and one format differs from another, so the first products of a process try both orders
// in turns and time them. Both give the same bits. No Highway header.
#pragma once

#include "mica/format/concept.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace mica::kernel::highway {

enum class Reading : std::uint8_t {
  apart,     // asked for some KiB ahead, at two places in turns (ops-inl.hpp)
  in_order,  // each chunk is read from its beginning to its end before it is used; the core does the rest
};

/// Which order a format has on this machine. Any thread; a product of another thread may count twice.
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
  /// The times of both orders, of as many bytes one after the other. What other programs do to one of a pair
  /// costs no more than that pair.
  void compare(std::chrono::nanoseconds apart, std::chrono::nanoseconds in_order) noexcept {
    if (is_made()) return;
    if (in_order < apart) wins_.fetch_add(1, std::memory_order_relaxed);
    comparisons_.fetch_add(1, std::memory_order_relaxed);
  }
  /// Makes the choice, or lets it be made again (empty): for tests and measurements.
  void set(std::optional<Reading> reading) noexcept {
    wins_.store(reading == Reading::in_order ? needed : 0, std::memory_order_relaxed);
    comparisons_.store(reading ? max_comparisons : 0, std::memory_order_relaxed);
  }

 private:
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
/// Bytes that are read in one order before the other has its turn: those at the beginning, which the other
/// order has asked for, are not timed.
inline constexpr std::size_t untimed_bytes = std::size_t{64} << 10, timed_bytes = std::size_t{192} << 10;

/// Reads panels [p, end) of panel_bytes bytes by read(first, last, reading): in pairs of both orders, which
/// are timed, as long as the choice is not made and enough panels are left.
template <class Read>
void read_in_turns(ReadingChoice& choice, std::size_t p, std::size_t end, std::size_t panel_bytes,
                   const Read& read) noexcept {
  using Clock = std::chrono::steady_clock;
  const std::size_t untimed = untimed_bytes / panel_bytes + 1, timed = timed_bytes / panel_bytes + 1;
  while (!choice.is_made() && end - p >= 2 * (untimed + timed)) {
    std::chrono::nanoseconds times[2];
    for (const Reading reading : {Reading::apart, Reading::in_order}) {
      read(p, p + untimed, reading);
      p += untimed;
      const Clock::time_point begin = Clock::now();
      read(p, p + timed, reading);
      p += timed;
      times[static_cast<std::size_t>(reading)] = Clock::now() - begin;
    }
    choice.compare(times[0], times[1]);
  }
  read(p, end, choice.get());
}

}  // namespace mica::kernel::highway
