// SPDX-License-Identifier: Apache-2.0
//
// What the kernel says about memory: swap, overcommit, huge pages, limits, control groups. Facts alone; what
// they mean for a run is in advice.hpp. Everything is read below a root folder, so that a test can have a
// /proc and a /sys of its own. What cannot be read is empty. Not here: graphics processors (cards.hpp).
#pragma once

#include "mica/budget/limits.hpp"
#include "mica_tools/advice/detail/small_files.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include <unistd.h>

namespace mica::advice {

/// A line of /proc/swaps.
struct SwapArea {
  std::string path;         // /dev/sda2, /dev/zram0, /swapfile
  std::uint64_t bytes = 0;  // of it
  bool in_memory = false;   // zram: a compressed disk in memory
};

/// zswap: swapped pages are compressed in memory before they are written (/sys/module/zswap/parameters).
struct Zswap {
  bool on = false;
  std::string compressor;         // "zstd"
  std::uint64_t max_percent = 0;  // of memory
};

/// Transparent huge pages (/sys/kernel/mm/transparent_hugepage).
struct HugePages {
  std::string enabled;       // always, madvise, never; of the size of a huge page where that has its own
  std::string enabled_file;  // the file that says so
  std::string defrag;        // always, defer, defer+madvise, madvise, never
  bool off_for_us = false;   // for this process alone (PR_SET_THP_DISABLE)
};

/// A limit of /proc/self/limits, bytes; empty: unlimited.
struct ProcessLimit {
  std::optional<std::uint64_t> soft = {}, hard = {};
};

/// One control group on the path from that of the process upward. Empty: no such limit.
struct Group {
  std::string folder;                       // of its files, without the root of a test
  std::string name;                         // on its path from the mounted top, "/" for that one
  std::optional<std::uint64_t> max = {};    // memory.max, or limit_in_bytes of version 1
  std::optional<std::uint64_t> high = {};   // memory.high
  std::optional<std::uint64_t> swap = {};   // memory.swap.max, or memsw.limit_in_bytes - limit_in_bytes
  std::optional<std::uint64_t> zswap = {};  // memory.zswap.max
};

/// A machine as its kernel describes it.
struct MachineFacts {
  budget::MemoryLimits memory;                     // bytes that the limits leave
  std::optional<std::vector<SwapArea>> swap = {};  // empty: not known; an empty list: no swap
  std::optional<Zswap> zswap = {};                 // empty: the kernel has none
  std::optional<std::uint64_t> swappiness = {};    // of our group in version 1, else vm.swappiness
  std::string swappiness_file;                     // that says so
  std::optional<std::uint64_t> overcommit = {};    // vm.overcommit_memory: 0, 1, 2
  std::optional<std::uint64_t> commit_limit = {};  // bytes
  std::optional<std::uint64_t> committed = {};     // bytes
  std::optional<HugePages> huge_pages = {};        // empty: the kernel has none
  std::optional<ProcessLimit> address_space = {};  // RLIMIT_AS
  std::optional<ProcessLimit> data = {};           // RLIMIT_DATA
  std::optional<ProcessLimit> locked = {};         // RLIMIT_MEMLOCK
  bool may_lock = false;                           // CAP_IPC_LOCK: no limit of locked memory counts
  int group_version = 0;                           // of control groups of memory: 1, 2; 0: none
  std::vector<Group> groups;                       // ours first
  bool has_systemd = false;                        // systemd started this machine
  bool is_linux = false;                           // there is a /proc

  /// Bytes of swap that our control groups allow; 0 without swap.
  [[nodiscard]] std::uint64_t usable_swap() const noexcept {
    std::uint64_t bytes = 0;
    if (swap)
      for (const SwapArea& area : *swap) bytes += area.bytes;
    for (const Group& group : groups) bytes = std::min(bytes, group.swap.value_or(bytes));
    return bytes;
  }
  /// Bytes that may still be committed under overcommit policy 2; empty under the others.
  [[nodiscard]] std::optional<std::uint64_t> commit_left() const noexcept {
    if (overcommit != 2 || !commit_limit || !committed) return std::nullopt;
    return *commit_limit - std::min(*commit_limit, *committed);
  }
};

namespace detail {

/// A number of one file of version 1, where the largest multiple of the page size in 63 bits is no limit.
[[nodiscard]] inline std::optional<std::uint64_t> group_limit(const std::string& path) {
  const auto number = budget::detail::read_number(path);
  return number && *number <= budget::MemoryLimits::unlimited / 4 ? number : std::nullopt;
}

[[nodiscard]] inline std::vector<SwapArea> swap_areas(std::string_view text) {
  std::vector<SwapArea> areas;
  static_cast<void>(budget::detail::take_until(text, '\n'));  // the header
  while (!text.empty()) {
    std::string_view line = budget::detail::take_until(text, '\n');
    std::vector<std::string_view> words;
    while (!line.empty()) {
      const std::string_view word = line.substr(0, line.find_first_of(" \t"));
      if (!word.empty()) words.push_back(word);
      line.remove_prefix(std::min(line.size(), word.size() + 1));
    }
    if (words.size() < 3) continue;
    SwapArea area;
    area.path = budget::detail::unescaped(words[0]);
    area.bytes = budget::detail::number_at(words[2]).value_or(0) * 1024;
    area.in_memory = area.path.starts_with("/dev/zram");
    areas.push_back(std::move(area));
  }
  return areas;
}

/// The word of a setting that is in brackets: "always [madvise] never"; empty if there is none.
[[nodiscard]] inline std::string chosen_word(const std::string& path) {
  const std::string line = first_line(path);
  const std::size_t begin = line.find('['), end = line.find(']');
  return begin == line.npos || end == line.npos || end < begin ? std::string()
                                                               : line.substr(begin + 1, end - begin - 1);
}

/// A size of huge pages may have a setting of its own, or inherit the one for all sizes.
[[nodiscard]] inline std::optional<HugePages> huge_pages(const std::string& root) {
  const std::string folder = "/sys/kernel/mm/transparent_hugepage/";
  HugePages pages;
  pages.enabled_file = folder + "enabled";
  pages.enabled = chosen_word(root + pages.enabled_file);
  if (pages.enabled.empty()) return std::nullopt;
  const auto bytes = budget::detail::read_number(join(root, folder, "hpage_pmd_size"));
  const std::string own = join(folder, "hugepages-", bytes.value_or(0) / 1024, "kB/enabled");
  if (const std::string word = chosen_word(root + own); !word.empty() && word != "inherit") {
    pages.enabled = word;
    pages.enabled_file = own;
  }
  pages.defrag = chosen_word(join(root, folder, "defrag"));
  const std::string status = budget::detail::read_text(root + "/proc/self/status").value_or("");
  pages.off_for_us = value_of(status, "THP_enabled:") == "0";
  return pages;
}

/// "Max address space         unlimited            unlimited            bytes".
[[nodiscard]] inline std::optional<ProcessLimit> process_limit(std::string_view limits,
                                                               std::string_view name) {
  const std::string line = value_of(limits, name);
  if (line.empty()) return std::nullopt;
  std::string_view rest = line;
  ProcessLimit limit;
  limit.soft = budget::detail::number_at(budget::detail::take_until(rest, ' '));
  rest.remove_prefix(std::min(rest.size(), rest.find_first_not_of(' ')));
  limit.hard = budget::detail::number_at(rest);
  return limit;
}

[[nodiscard]] inline Group group_of(const std::string& root, const std::string& folder, bool v2) {
  Group group;
  group.folder = folder.substr(root.size());
  if (v2) {
    group.max = group_limit(folder + "/memory.max");
    group.high = group_limit(folder + "/memory.high");
    group.swap = group_limit(folder + "/memory.swap.max");
    group.zswap = group_limit(folder + "/memory.zswap.max");
    return group;
  }
  group.max = group_limit(folder + "/memory.limit_in_bytes");
  const auto both = group_limit(folder + "/memory.memsw.limit_in_bytes");
  if (both) group.swap = *both - std::min(*both, group.max.value_or(0));
  return group;
}

/// The groups of version 1 where it has the memory controller, else those of version 2.
inline void add_groups(MachineFacts& facts, const std::string& root) {
  for (const bool v2 : {false, true}) {
    const std::vector<std::string> folders = budget::detail::cgroup_folders(root, v2 ? "" : "memory");
    if (folders.empty()) continue;
    facts.group_version = v2 ? 2 : 1;
    for (const std::string& folder : folders) {
      facts.groups.push_back(group_of(root, folder, v2));
      facts.groups.back().name = folder.substr(folders.back().size());
      if (facts.groups.back().name.empty()) facts.groups.back().name = "/";
    }
    return;
  }
}

inline void add_swappiness(MachineFacts& facts, const std::string& root) {
  facts.swappiness_file = "/proc/sys/vm/swappiness";
  facts.swappiness = budget::detail::read_number(root + facts.swappiness_file);
  if (facts.group_version != 1) return;
  const std::string own = facts.groups.front().folder + "/memory.swappiness";
  if (const auto number = budget::detail::read_number(root + own)) {
    facts.swappiness = number;
    facts.swappiness_file = own;
  }
}

}  // namespace detail

/// The facts in the files below root/proc, root/sys and root/run; "" is this machine. Cost: some tens of
/// small files, a millisecond.
[[nodiscard]] inline MachineFacts read_machine_facts(const std::string& root) {
  using budget::detail::read_number;
  using budget::detail::read_text;
  MachineFacts facts;
  facts.memory = root.empty() ? budget::memory_limits() : budget::read_memory_limits(root);
  const auto meminfo = read_text(root + "/proc/meminfo");
  if (!meminfo) return facts;
  facts.is_linux = true;
  const auto kib = [&](std::string_view key) -> std::optional<std::uint64_t> {
    const auto number = budget::detail::number_of(*meminfo, key);
    return number && *number <= budget::MemoryLimits::unlimited / 1024 ? std::optional(*number * 1024)
                                                                       : std::nullopt;
  };
  detail::add_groups(facts, root);
  // A kernel without swap has no such file.
  facts.swap = detail::swap_areas(read_text(root + "/proc/swaps").value_or(""));
  detail::add_swappiness(facts, root);
  const std::string zswap = root + "/sys/module/zswap/parameters/";
  if (const std::string on = detail::first_line(zswap + "enabled"); !on.empty())
    facts.zswap = {on == "Y" || on == "1", detail::first_line(zswap + "compressor"),
                   read_number(zswap + "max_pool_percent").value_or(0)};
  facts.overcommit = read_number(root + "/proc/sys/vm/overcommit_memory");
  facts.commit_limit = kib("CommitLimit:");
  facts.committed = kib("Committed_AS:");
  facts.huge_pages = detail::huge_pages(root);
  const std::string limits = read_text(root + "/proc/self/limits").value_or("");
  facts.address_space = detail::process_limit(limits, "Max address space");
  facts.data = detail::process_limit(limits, "Max data size");
  facts.locked = detail::process_limit(limits, "Max locked memory");
  constexpr int cap_ipc_lock = 14;  // linux/capability.h
  const std::string status = read_text(root + "/proc/self/status").value_or("");
  const auto capabilities = detail::hex_number(detail::value_of(status, "CapEff:"));
  facts.may_lock = (capabilities.value_or(0) >> cap_ipc_lock & 1) != 0;
  facts.has_systemd = ::access((root + "/run/systemd/system").c_str(), F_OK) == 0;
  return facts;
}

}  // namespace mica::advice
