// SPDX-License-Identifier: Apache-2.0
//
// How fast a number of bytes grows: the most that it grew within a short time, which is what may be missing
// before the next reading leads to anything.
//
//   others   100 100 120 140 140 ...      growth within the window: 40; it counts for some time, and fades
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace mica::budget {

/// One thread. Takes no memory.
class Growth {
 public:
  using Clock = std::chrono::steady_clock;  // of samples, in their order

  /// window: of time in which growth is measured. half_life: of the maximum that was seen.
  explicit Growth(Clock::duration window = std::chrono::milliseconds(100),
                  Clock::duration half_life = std::chrono::seconds(10)) noexcept
      : window_(window), half_life_(half_life) {}

  /// Adds a sample. If they come faster than 64 in a window, the window is shorter.
  void add(Clock::time_point now, std::uint64_t bytes) noexcept {
    if (count_ > 0) {
      const double age = std::chrono::duration<double>(now - samples_[(count_ - 1) % size].at).count();
      peak_ *= std::exp2(-age / std::chrono::duration<double>(half_life_).count());
    }
    samples_[count_++ % size] = {now, bytes};
    std::uint64_t min = bytes;
    for (std::size_t i = 1; i < std::min(count_, size); ++i) {
      const Sample& sample = samples_[(count_ - 1 - i) % size];
      if (i > 1 && now - sample.at > window_) break;  // the last sample before this one counts in any case
      min = std::min(min, sample.bytes);
    }
    recent_ = bytes - min;
    peak_ = std::max(peak_, static_cast<double>(recent_));
  }
  /// Another number begins: nothing is known of it.
  void restart() noexcept { count_ = recent_ = 0, peak_ = 0; }

  [[nodiscard]] Clock::duration window() const noexcept { return window_; }
  /// Bytes by which it grew within the last window.
  [[nodiscard]] std::uint64_t recent() const noexcept { return recent_; }
  /// The maximum of it so far, which fades.
  [[nodiscard]] std::uint64_t peak() const noexcept { return static_cast<std::uint64_t>(peak_); }

 private:
  static constexpr std::size_t size = 64;
  struct Sample {
    Clock::time_point at;
    std::uint64_t bytes = 0;
  };

  Clock::duration window_, half_life_;
  std::array<Sample, size> samples_{};
  std::size_t count_ = 0;  // of samples so far
  std::uint64_t recent_ = 0;
  double peak_ = 0;
};

}  // namespace mica::budget
