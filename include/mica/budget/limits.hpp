// SPDX-License-Identifier: Apache-2.0
//
// The bytes and cores of the machine that this process may use. These give the default budget and the default
// number of threads. The system promises nothing: other processes take memory and cores meanwhile.
#pragma once

#include "mica/budget/detail/cgroup.hpp"
#include "mica/budget/detail/own_pages.hpp"
#include "mica/budget/size.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

namespace mica::budget {

/// Bytes that different authorities leave to this process; `unlimited` where one sets no limit.
struct MemoryLimits {
  static constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();  // no limit

  std::uint64_t installed = unlimited;  ///< the machine's memory
  std::uint64_t available = unlimited;  ///< the kernel's estimate of what is available without swapping
  std::uint64_t cgroup = unlimited;     ///< the minimum of memory.max and memory.high, from our group upward
  std::uint64_t cgroup_left =
      unlimited;  ///< the minimum of limit - use there; page cache that can be dropped is not use
  /// RLIMIT_AS less what is mapped now, and a stack for each thread that is started by default.
  std::uint64_t address_space = unlimited;

  /// The available bytes: the minimum of all.
  [[nodiscard]] std::uint64_t usable() const noexcept {
    return std::min({installed, available, cgroup, cgroup_left, address_space});
  }

  /// These limits if `bytes` more are in use.
  [[nodiscard]] MemoryLimits without(std::uint64_t bytes) const noexcept {
    MemoryLimits less = *this;
    for (std::uint64_t* left :
         {&less.installed, &less.available, &less.cgroup, &less.cgroup_left, &less.address_space})
      *left -= *left == unlimited ? 0 : std::min(*left, bytes);
    return less;
  }

  /// The authority that set the limit of usable(), for messages.
  [[nodiscard]] std::string_view authority() const noexcept {
    const std::uint64_t min = usable();
    if (min == unlimited) return "no limit";
    if (min == cgroup || min == cgroup_left) return "the control group";
    if (min == address_space) return "RLIMIT_AS";
    return "the machine's memory";
  }
};

/// Cores that this process may use.
struct CpuLimits {
  std::size_t cpus = 1;  ///< in the affinity mask
  double quota =
      std::numeric_limits<double>::infinity();  ///< cores' worth of time granted by the control groups

  /// The default number of threads: the cores of the mask, at most the quota rounded up, at least one.
  [[nodiscard]] std::size_t threads() const noexcept {
    return quota < static_cast<double>(cpus)
               ? std::max<std::size_t>(1, static_cast<std::size_t>(std::ceil(quota)))
               : std::max<std::size_t>(1, cpus);
  }
};

namespace detail {

/// The names of the files and keys with the same meaning in versions 1 and 2.
struct MemoryFiles {
  const char* controller;
  const char* limits[2];
  const char* use;
  const char* cache[2];
};

inline constexpr MemoryFiles memory_v2 = {
    "", {"/memory.max", "/memory.high"}, "/memory.current", {"inactive_file ", "active_file "}};
inline constexpr MemoryFiles memory_v1 = {"memory",
                                          {"/memory.limit_in_bytes", nullptr},
                                          "/memory.usage_in_bytes",
                                          {"total_inactive_file ", "total_active_file "}};

/// Memory in use in a group that dropping page cache would not free.
[[nodiscard]] inline std::uint64_t firm_use(const std::string& folder, const MemoryFiles& files) {
  std::uint64_t use = read_number(folder + files.use).value_or(0);
  const auto stat = read_text(folder + "/memory.stat");
  if (!stat) return use;
  for (const char* key : files.cache) use -= std::min(use, number_of(*stat, key).value_or(0));
  return use;
}

inline void apply_groups(MemoryLimits& limits, const std::string& root, const MemoryFiles& files) {
  for (const std::string& folder : cgroup_folders(root, files.controller)) {
    std::uint64_t min = MemoryLimits::unlimited;
    for (const char* name : files.limits) {
      if (name != nullptr) min = std::min(min, read_number(folder + name).value_or(MemoryLimits::unlimited));
    }
    // Version 1 writes the largest multiple of the page size that fits 63 bits for "no limit".
    if (min > MemoryLimits::unlimited / 4) continue;
    limits.cgroup = std::min(limits.cgroup, min);
    limits.cgroup_left = std::min(limits.cgroup_left, min - std::min(min, firm_use(folder, files)));
  }
}

/// Cores' worth of time that one group grants; empty without a quota.
[[nodiscard]] inline std::optional<double> group_quota(const std::string& folder, bool v2) {
  std::optional<std::uint64_t> quota;
  std::optional<std::uint64_t> period;
  if (v2) {
    const auto text = read_text(folder + "/cpu.max");  // "150000 100000" or "max 100000"
    if (!text) return std::nullopt;
    std::string_view rest = *text;
    quota = number_at(take_until(rest, ' '));
    period = number_at(rest);
  } else {
    quota = read_number(folder + "/cpu.cfs_quota_us");  // -1: none
    period = read_number(folder + "/cpu.cfs_period_us");
  }
  if (!quota || !period || *quota == 0 || *period == 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

/// Address space of a thread's stack.
[[nodiscard]] inline std::uint64_t stack_bytes() noexcept {
  ::pthread_attr_t attributes;
  if (::pthread_attr_init(&attributes) != 0) return 0;
  std::size_t bytes = 0;
  static_cast<void>(::pthread_attr_getstacksize(&attributes, &bytes));
  static_cast<void>(::pthread_attr_destroy(&attributes));
  return bytes;
}

/// Max bytes of a program in memory when it begins: code and libraries. Plans count them in `process`.
inline constexpr std::uint64_t program_bytes = std::uint64_t{8} << 20;

/// RLIMIT_AS less what is mapped now; bytes that plans count (program_bytes) are not subtracted.
[[nodiscard]] inline std::uint64_t address_space_left() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return MemoryLimits::unlimited;
  const OwnPages pages = OwnPages::of(read_text("/proc/self/statm").value_or(""));
  const std::uint64_t mapped = page_bytes() * pages.mapped, resident = page_bytes() * pages.resident;
  const auto allowed = static_cast<std::uint64_t>(limit.rlim_cur);
  return allowed - std::min(allowed, mapped - std::min({mapped, resident, program_bytes}));
}

/// CPUs in the affinity mask of the calling thread.
[[nodiscard]] inline std::size_t affinity_cpus() {
#if defined(__linux__)
  for (std::size_t cpus = 1024; cpus <= (std::size_t{1} << 20);
       cpus *= 2) {  // the kernel's mask may be wider than ours
    cpu_set_t* const set = CPU_ALLOC(cpus);
    if (set == nullptr) break;
    const std::size_t bytes = CPU_ALLOC_SIZE(cpus);
    const int count = ::sched_getaffinity(0, bytes, set) == 0 ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (count > 0) return static_cast<std::size_t>(count);
  }
#endif
  return std::max<std::size_t>(1, std::thread::hardware_concurrency());
}

}  // namespace detail

/// The limits in the files below root/proc and root/sys; address_space stays unlimited.
[[nodiscard]] inline MemoryLimits read_memory_limits(const std::string& root) {
  MemoryLimits limits;
  if (const auto meminfo = detail::read_text(root + "/proc/meminfo")) {
    const auto kib = [&](std::string_view key) {
      const auto number = detail::number_of(*meminfo, key);
      return number && *number <= MemoryLimits::unlimited / 1024 ? *number * 1024 : MemoryLimits::unlimited;
    };
    limits.installed = kib("MemTotal:");
    limits.available = kib("MemAvailable:");
  }
  detail::apply_groups(limits, root, detail::memory_v2);
  detail::apply_groups(limits, root, detail::memory_v1);
  return limits;
}

/// The CPU quota in the files below root/proc and root/sys, in cores; infinite without one.
[[nodiscard]] inline double read_cpu_quota(const std::string& root) {
  double min = std::numeric_limits<double>::infinity();
  for (const bool v2 : {true, false}) {
    for (const std::string& folder : detail::cgroup_folders(root, v2 ? "" : "cpu")) {
      min = std::min(min, detail::group_quota(folder, v2).value_or(min));
    }
  }
  return min;
}

/// The limits of this process.
[[nodiscard]] inline CpuLimits cpu_limits() { return {detail::affinity_cpus(), read_cpu_quota("")}; }

/// The limits of this process.
[[nodiscard]] inline MemoryLimits memory_limits() {
  MemoryLimits limits = read_memory_limits("");
  if (limits.installed == MemoryLimits::unlimited) {  // not Linux
    const long pages = ::sysconf(_SC_PHYS_PAGES);
    const long page = ::sysconf(_SC_PAGESIZE);
    if (pages > 0 && page > 0) {
      limits.installed = static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page);
    }
  }
  limits.address_space = detail::address_space_left();
  if (limits.address_space != limits.unlimited)
    limits.address_space -=
        std::min(limits.address_space, detail::stack_bytes() * (cpu_limits().threads() - 1));
  return limits;
}

/// The ceiling of memory and where it comes from: the requested budget, or what the limits leave if that is
/// less. Limits are read once, at the start of a program or when a model is opened; plans, ledgers and
/// messages take the number from there. If they were read again later, bytes of the budget itself would count
/// as used.
struct Ceiling {
  std::uint64_t bytes = MemoryLimits::unlimited;        ///< the ceiling
  std::optional<std::uint64_t> asked = {};              ///< empty: the limits alone give the number
  std::string_view authority = "the machine's memory";  ///< sets the limit

  /// Whether the ceiling is below the requested budget.
  [[nodiscard]] bool lowered() const noexcept { return asked && *asked > bytes; }
};

/// The smaller one of the requested budget and what the limits leave.
[[nodiscard]] inline Ceiling ceiling_of(std::optional<std::uint64_t> asked,
                                        const MemoryLimits& limits) noexcept {
  return {std::min(asked.value_or(MemoryLimits::unlimited), limits.usable()), asked, limits.authority()};
}

/// "400.0 MiB is more than the control group leaves; 293.0 MiB count": for a lowered one.
[[nodiscard]] inline std::string text(const Ceiling& ceiling) {
  return join(size_text(ceiling.asked.value_or(ceiling.bytes)), " is more than ", ceiling.authority,
              " leaves; ", size_text(ceiling.bytes), " count");
}

}  // namespace mica::budget
