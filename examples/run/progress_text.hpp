// SPDX-License-Identifier: Apache-2.0
//
// The texts of progress lines: finished work, speed, remaining time.
#pragma once

#include "json_text.hpp"
#include "mica/base/error.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace mica::program {

/// "48 s", "12 min", "3 h 05 min".
[[nodiscard]] inline std::string duration_text(double seconds) {
  const auto whole = static_cast<std::uint64_t>(std::clamp(seconds, 0.0, 1e9) + 0.5);
  if (whole < 100) return join(whole, " s");
  const std::uint64_t minutes = (whole + 30) / 60;
  if (minutes < 100) return join(minutes, " min");
  return join(minutes / 60, " h ", minutes % 60 < 10 ? "0" : "", minutes % 60, " min");
}

/// "quantizing: [######..............]  31 %, 48 s left"; no time before it can be estimated.
[[nodiscard]] inline std::string bar_text(std::string_view what, std::uint64_t done, std::uint64_t all,
                                          double seconds) {
  constexpr std::size_t width = 20;
  const double part = all == 0 ? 1.0 : std::min(1.0, static_cast<double>(done) / static_cast<double>(all));
  const auto filled = static_cast<std::size_t>(part * width);
  const std::string percent = join(static_cast<int>(part * 100));
  return join(what, ": [", std::string(filled, '#'), std::string(width - filled, '.'), "] ",
              std::string(3 - percent.size(), ' '), percent, " %",
              done == 0 ? "" : join(", ", duration_text(seconds / part - seconds), " left"));
}

/// The progress of reading a prompt.
struct Reading {
  std::size_t all = 0;   // tokens
  std::size_t done = 0;  // after whole steps
  double seconds = 0;    // when that many were done
};

/// "reading the prompt: 512 of 9392 tokens, 712 t/s, 12 s left"; in the first step how long it takes so far.
/// now: seconds since the beginning.
[[nodiscard]] inline std::string reading_text(const Reading& reading, double now) {
  if (reading.done == 0 || reading.seconds <= 0)
    return join("reading the prompt: ", reading.all, " tokens, ", duration_text(now));
  const double rate = static_cast<double>(reading.done) / reading.seconds;
  const double left = static_cast<double>(reading.all - std::min(reading.done, reading.all)) / rate;
  return join("reading the prompt: ", reading.done, " of ", reading.all, " tokens, ",
              fixed(rate, rate < 10 ? 1 : 0), " t/s, ",
              duration_text(std::max(0.0, left - (now - reading.seconds))), " left");
}

}  // namespace mica::program
