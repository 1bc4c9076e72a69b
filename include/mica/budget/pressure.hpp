// SPDX-License-Identifier: Apache-2.0
//
// How short memory is now, for a process that can release some: the bytes that remain below the limits of the
// control groups and of the machine, and the time that tasks waited for memory. Files stay open. There is no
// thread.
//
//   control group, v2   memory.max memory.high memory.current memory.stat, memory.pressure, memory.events
//   control group, v1   memory.limit_in_bytes memory.usage_in_bytes memory.stat, -, memory.oom_control
//   machine             MemTotal MemAvailable of /proc/meminfo, /proc/pressure/memory, -
//   this process        /proc/self/statm
#pragma once

#include "mica/budget/detail/cgroup.hpp"
#include "mica/budget/detail/own_pages.hpp"
#include "mica/budget/detail/polled_file.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::budget {

/// One reading. The limit and the remaining bytes are those of the authority where the fewest bytes are left
/// above reserve_of() its limit.
struct Pressure {
  static constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();  // no limit

  std::string_view authority = "no limit";  ///< "the control group", "the machine"
  std::uint64_t limit = unlimited;          ///< bytes
  std::uint64_t left = unlimited;           ///< bytes; page cache that can be dropped counts as left
  /// Part of the time since the last reading in which a task waited for memory; the maximum of all files.
  double stalled = 0;
  std::uint64_t killed = 0;  ///< processes that were killed for memory in our groups since the last reading
  std::uint64_t others = 0;  ///< bytes below that limit that other processes use

  /// Memory is short below this part of a limit, which is at least 8 MiB and at most 512 MiB.
  static constexpr double reserve_part = 0.02;
  static constexpr std::uint64_t min_reserve = std::uint64_t{8} << 20, max_reserve = std::uint64_t{512} << 20;
  [[nodiscard]] static constexpr std::uint64_t reserve_of(std::uint64_t limit) noexcept {
    const double part = reserve_part * static_cast<double>(limit);
    return std::clamp(static_cast<std::uint64_t>(part), min_reserve, max_reserve);
  }
};

/// Reads when it is called, and not more often than `every`. One thread.
/// Cost: a clock, or a read for each file: some tens of microseconds.
class PressureReader {
 public:
  using Clock = std::chrono::steady_clock;  // of `every` and `now`

  /// root: stands before /proc and /sys, for tests. every: the minimum time between two readings.
  explicit PressureReader(const std::string& root = "",
                          Clock::duration every = std::chrono::milliseconds(100))
      : meminfo_(root + "/proc/meminfo"),
        machine_pressure_(root + "/proc/pressure/memory"),
        statm_(root + "/proc/self/statm"),
        every_(every) {
    add_groups(root, true);
    add_groups(root, false);
  }

  /// Empty where it is too early, or where there is nothing to read.
  [[nodiscard]] std::optional<Pressure> poll(Clock::time_point now) {
    if (last_ && now - *last_ < every_) return std::nullopt;
    const double seconds = last_ ? std::chrono::duration<double>(now - *last_).count() : 0;
    last_ = now;
    Pressure pressure;
    for (Group& group : groups_) read_group(group, pressure, seconds);
    read_machine_memory(pressure, seconds);
    if (pressure.limit == Pressure::unlimited) return std::nullopt;
    const std::uint64_t used = pressure.limit - pressure.left;
    pressure.others = used - std::min(used, own_bytes());
    return pressure;
  }

  /// Memory of this process that no file has, in bytes; 0 where the system does not say.
  [[nodiscard]] std::uint64_t own_bytes() noexcept {
    const auto pages = detail::OwnPages::of(text(statm_));
    return detail::page_bytes() * (pages.resident - std::min(pages.resident, pages.shared));
  }

 private:
  using File = detail::PolledFile;

  struct Group {
    std::vector<File> limits;
    File use, stat, pressure, events;
    bool v2;
    std::uint64_t stalled_us = 0;  // at the last reading
    std::uint64_t killed = 0;
  };

  void add_groups(const std::string& root, bool v2) {
    for (const std::string& folder : detail::cgroup_folders(root, v2 ? "" : "memory")) {
      Group group;
      group.v2 = v2;
      for (const char* name :
           v2 ? std::array{"/memory.max", "/memory.high"} : std::array{"/memory.limit_in_bytes", ""}) {
        if (File file{folder + name}; *name != '\0' && file) group.limits.push_back(std::move(file));
      }
      group.use = File(folder + (v2 ? "/memory.current" : "/memory.usage_in_bytes"));
      group.stat = File(folder + "/memory.stat");
      group.pressure = File(folder + "/memory.pressure");
      group.events = File(folder + (v2 ? "/memory.events" : "/memory.oom_control"));
      if (group.use && !group.limits.empty()) groups_.push_back(std::move(group));
    }
  }

  [[nodiscard]] std::string_view text(const File& file) noexcept { return file.read(buffer_); }
  void read_group(Group& group, Pressure& pressure, double seconds) noexcept {
    pressure.stalled = std::max(pressure.stalled, stalled(group.pressure, group.stalled_us, seconds));
    const auto killed = detail::number_of(text(group.events), "oom_kill ").value_or(group.killed);
    const std::uint64_t before = std::exchange(group.killed, killed);
    if (seconds > 0) pressure.killed = std::max(pressure.killed, killed - std::min(killed, before));
    const std::uint64_t limit = limit_of(group);
    if (limit == Pressure::unlimited) return;
    std::uint64_t use = detail::number_at(text(group.use)).value_or(0);
    const std::string_view stat = text(group.stat);
    for (const char* key : group.v2 ? std::array{"inactive_file ", "active_file "}
                                    : std::array{"total_inactive_file ", "total_active_file "}) {
      use -= std::min(use, detail::number_of(stat, key).value_or(0));
    }
    offer(pressure, "the control group", limit, limit - std::min(limit, use));
  }

  void read_machine_memory(Pressure& pressure, double seconds) noexcept {
    pressure.stalled = std::max(pressure.stalled, stalled(machine_pressure_, machine_stalled_us_, seconds));
    const std::string_view meminfo = text(meminfo_);
    const auto total = detail::number_of(meminfo, "MemTotal:"),
               left = detail::number_of(meminfo, "MemAvailable:");
    if (total && left) offer(pressure, "the machine", *total * 1024, std::min(*left, *total) * 1024);
  }
  /// The minimum of its limits. Version 1 writes the largest multiple of the page size in 63 bits for none.
  [[nodiscard]] std::uint64_t limit_of(const Group& group) noexcept {
    std::uint64_t min = Pressure::unlimited;
    for (const File& file : group.limits) min = std::min(min, detail::number_at(text(file)).value_or(min));
    return min > Pressure::unlimited / 4 ? Pressure::unlimited : min;
  }
  /// The time in "some avg10=0.00 avg60=0.00 avg300=0.00 total=7575483", microseconds.
  [[nodiscard]] double stalled(const File& file, std::uint64_t& before_us, double seconds) noexcept {
    std::string_view line = text(file);
    line = detail::take_until(line, '\n');
    const std::size_t at = line.find("total=");
    if (!line.starts_with("some ") || at == std::string_view::npos) return 0;
    const std::uint64_t now_us = detail::number_at(line.substr(at + 6)).value_or(before_us);
    const std::uint64_t us = now_us - std::min(now_us, std::exchange(before_us, now_us));
    return seconds <= 0 ? 0 : std::min(static_cast<double>(us) / 1e6 / seconds, 1.0);
  }
  static void offer(Pressure& pressure, std::string_view authority, std::uint64_t limit,
                    std::uint64_t left) noexcept {
    const auto above = [](std::uint64_t l, std::uint64_t of) {
      return static_cast<std::int64_t>(l) - static_cast<std::int64_t>(Pressure::reserve_of(of));
    };
    if (limit == 0 ||
        (pressure.limit != Pressure::unlimited && above(left, limit) >= above(pressure.left, pressure.limit)))
      return;
    pressure.authority = authority;
    pressure.limit = limit;
    pressure.left = left;
  }

  std::vector<Group> groups_;
  File meminfo_, machine_pressure_, statm_;
  std::uint64_t machine_stalled_us_ = 0;
  Clock::duration every_;
  std::optional<Clock::time_point> last_;
  std::array<char, 16384> buffer_;
};

}  // namespace mica::budget
