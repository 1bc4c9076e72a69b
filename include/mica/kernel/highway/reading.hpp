// SPDX-License-Identifier: Apache-2.0
//
// The order in which a product of one token reads weights that come from memory. Processors differ in what
// they read fastest, and one format differs from another, so the first products of a process try both orders
// in turns and time them. Both give the same bits. No Highway header.
#pragma once

#include "mica/base/bits.hpp"
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
  in_order,  // the lines of each chunk are read one after the other before it is used; the core prefetches
};

/// Which order a format has on this machine. Any thread.
class ReadingChoice {
 public:
  /// Comparisons until the choice is made, and how many of them `in_order` has to win. If both are equally
  /// fast, it wins so many by chance in one of forty processes; if it is faster in 62 of 100 comparisons, as
  /// where two workers share a bus, it is chosen in 97 of 100 processes.
  static constexpr std::uint32_t max_comparisons = 256, needed = 144;

  [[nodiscard]] bool is_made() const noexcept {
    return comparisons_.load(std::memory_order_relaxed) >= max_comparisons;
  }
  /// The order to read in; Reading::apart until the choice is made.
  [[nodiscard]] Reading get() const noexcept {
    return is_made() && wins_.load(std::memory_order_relaxed) >= needed ? Reading::in_order : Reading::apart;
  }
  /// Compares the seconds of a byte in both orders, read by one thread one after the other: so a disturbance
  /// by other programs spoils one comparison only.
  void compare(double apart, double in_order) noexcept {
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

/// Matrices below this many bytes may lie in a cache, and are not timed. Limit: a format that occurs in
/// smaller ones alone is read apart.
inline constexpr std::size_t min_timed_matrix = std::size_t{256} << 10;
/// Panels that are timed together: the rows of a task of one token (block/linear.hpp).
inline constexpr std::size_t timed_panels = 4;
/// Bytes, at least, that are read in one order before it is timed. Lines that `apart` asked for ahead of them
/// would count for the other order.
inline constexpr std::size_t bytes_of_turn = std::size_t{64} << 10;

/// The last time of a thread that is not compared yet.
struct ReadingTime {
  const ReadingChoice* choice = nullptr;  // null: there is none
  double seconds = 0;                     // of a byte, apart
};

/// Reads panels [p, end) of panel_bytes bytes by read(first, last, reading). Until the choice is made, two
/// turns of as many panels as bytes_of_turn fill are read apart, two in order, and so on. The second of each
/// two is timed.
template <class Read>
void read_in_turns(ReadingChoice& choice, std::size_t p, std::size_t end, std::size_t panel_bytes,
                   const Read& read) noexcept {
  using Clock = std::chrono::steady_clock;
  thread_local ReadingTime apart;
  const std::size_t panels_of_turn = round_up(ceil_div(bytes_of_turn, panel_bytes), timed_panels);
  while (p < end && !choice.is_made()) {
    const std::size_t turn = p / panels_of_turn, stop = std::min(end, (p / timed_panels + 1) * timed_panels);
    const Reading reading = turn / 2 % 2 == 0 ? Reading::apart : Reading::in_order;
    const Clock::time_point begin = Clock::now();
    read(p, stop, reading);
    const std::chrono::duration<double> time = Clock::now() - begin;
    const bool timed = turn % 2 == 1 && stop - p == timed_panels;
    const double seconds = time.count() / static_cast<double>(timed_panels * panel_bytes);
    p = stop;
    if (!timed) continue;
    if (reading == Reading::in_order && apart.choice == &choice) choice.compare(apart.seconds, seconds);
    apart = reading == Reading::apart ? ReadingTime{&choice, seconds} : ReadingTime{};
  }
  if (p < end) read(p, end, choice.get());
}

}  // namespace mica::kernel::highway
