// SPDX-License-Identifier: Apache-2.0
//
// The texts of progress: a line that fits into the width of a terminal, and where the line cannot be
// rewritten, one for each tenth.
#pragma once

#include "json_text.hpp"
#include "mica/base/error.hpp"
#include "mica/budget/size.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace mica::program {

/// "48 s", "12 min", "3 h 05 min".
[[nodiscard]] inline std::string duration_text(double seconds) {
  const auto whole = static_cast<std::uint64_t>(std::clamp(seconds, 0.0, 1e9) + 0.5);
  if (whole < 100) return join(whole, " s");
  const std::uint64_t minutes = (whole + 30) / 60;
  if (minutes < 100) return join(minutes, " min");
  return join(minutes / 60, " h ", minutes % 60 < 10 ? "0" : "", minutes % 60, " min");
}

/// The unit of finished work; its rate is shown, unless it is `pieces`.
enum class WorkUnit : std::uint8_t { pieces, bytes, weights, tokens };

/// "120.0 MiB/s", "34 M weights/s", "712 t/s"; empty for pieces.
[[nodiscard]] inline std::string rate_text(WorkUnit unit, double per_second) {
  const double rate = std::clamp(per_second, 0.0, 1e18);
  if (unit == WorkUnit::bytes) return join(budget::size_text(static_cast<std::uint64_t>(rate)), "/s");
  if (unit == WorkUnit::weights) return join(fixed(rate / 1e6, rate < 1e7 ? 1 : 0), " M weights/s");
  if (unit == WorkUnit::tokens) return join(fixed(rate, rate < 10 ? 1 : 0), " t/s");
  return {};
}

/// A moment of long work.
struct WorkState {
  std::string what;        // "quantizing"
  std::uint64_t done = 0;  // finished work; may be more than `all`
  std::uint64_t all = 0;   // 0: unknown
  double at = 0;           // seconds from the beginning to the moment when `done` was reached
  WorkUnit unit = WorkUnit::pieces;
  std::string more = {};     // behind the numbers; the first part that a narrow terminal leaves out
  std::uint64_t before = 0;  // the part of `done` that an earlier run finished

  [[nodiscard]] double fraction() const noexcept { return fraction_of(done); }
  /// A part of all work, at most 1.
  [[nodiscard]] double fraction_of(std::uint64_t part) const noexcept {
    return all == 0 ? 0 : std::min(1.0, static_cast<double>(part) / static_cast<double>(all));
  }
};

/// "712 t/s, 12 s left"; what cannot be estimated is left out. now: seconds from the beginning.
[[nodiscard]] inline std::string numbers_text(const WorkState& work, double now) {
  if (work.done <= work.before || work.at <= 0) return now < 1 ? std::string() : duration_text(now);
  const double now_done = static_cast<double>(work.done - work.before);
  const std::string rate = rate_text(work.unit, now_done / work.at);
  if (work.all == 0) return join(rate, rate.empty() ? "" : ", ", duration_text(now));
  const double remaining = static_cast<double>(work.all - std::min(work.all, work.done));
  const double left = work.at * remaining / now_done - (now - work.at);
  return join(rate, rate.empty() ? "" : ", ", duration_text(std::max(0.0, left)), " left");
}

/// "quantizing: [######..............]  31 % 120.0 MiB/s, 48 s left, blk.3.ffn_up". It has at most `columns`
/// bytes where `what` is text of one byte a column: the bar becomes shorter first, and then parts at the end
/// are left out, and `what` is cut. now: seconds from the beginning.
[[nodiscard]] inline std::string progress_line(const WorkState& work, double now, std::size_t columns) {
  constexpr std::size_t widest = 30, narrowest = 5;
  const std::string numbers = numbers_text(work, now);
  std::string tail;
  std::size_t bar = 0;
  if (work.all > 0) {
    const std::string percent = join(static_cast<int>(work.fraction() * 100));
    tail = join(std::string(3 - percent.size(), ' '), percent, " %");
  }
  std::size_t used = work.what.size() + 2 + tail.size();
  for (const std::string& part : {numbers, work.more}) {
    const std::size_t size = part.size() + (tail.empty() ? 0 : 2);
    if (part.empty() || used + size > columns) break;
    tail += join(tail.empty() ? "" : ", ", part);
    used += size;
  }
  if (work.all > 0 && used + narrowest + 3 <= columns) bar = std::min(widest, columns - used - 3);
  const auto filled = static_cast<std::size_t>(work.fraction() * static_cast<double>(bar));
  std::string line = work.what + (tail.empty() ? "" : ": ");
  if (bar > 0) line += join("[", std::string(filled, '#'), std::string(bar - filled, '.'), "] ");
  line += tail;
  std::size_t end = std::min(line.size(), columns);
  while (end > 0 && end < line.size() && (static_cast<unsigned char>(line[end]) & 0xC0) == 0x80) --end;
  line.resize(end);  // whole characters
  return line;
}

/// Chooses the moments that get a line in a file or a pipe: each new tenth, once work takes long, but not the
/// end, after which there is another text.
class TenthLines {
 public:
  static constexpr double patience = 3;  // seconds without a line

  /// Whether to write a line now. The tenths that passed in silence count as one.
  [[nodiscard]] bool due(const WorkState& work) noexcept {
    if (work.all == 0 || work.at < patience || work.done >= work.all) return false;
    last_ = std::max(last_, static_cast<int>(work.fraction_of(work.before) * 10));
    const auto tenth = static_cast<int>(work.fraction() * 10);
    return tenth > std::exchange(last_, std::max(last_, tenth));
  }

 private:
  int last_ = 0;
};

/// "quantizing: 30 %, 120.0 MiB/s, 48 s left"
[[nodiscard]] inline std::string tenth_text(const WorkState& work) {
  const std::string numbers = numbers_text(work, work.at);
  return join(work.what, ": ", static_cast<int>(work.fraction() * 10) * 10, " %", numbers.empty() ? "" : ", ",
              numbers, work.more.empty() ? "" : ", ", work.more);
}

}  // namespace mica::program
