// SPDX-License-Identifier: Apache-2.0
//
// What the facts about a machine and a file mean for a run of mica, one line for each subject: what was
// found, what it means, what to change, and the command for that. Where nothing needs to be changed, the line
// says "fine". Pure functions: nothing is read.
//
// What is assumed of a run: resident weights, keys and values are anonymous memory in huge pages, which the
// kernel may swap out; streamed weights are read without the page cache; memory that the kernel refuses ends
// the run (docs/memory.md). Sources: admin-guide/mm/transhuge.rst, admin-guide/cgroup-v2.rst,
// admin-guide/mm/zswap.rst, admin-guide/sysctl/vm.rst and mm/overcommit-accounting.rst of the kernel's
// documentation, getrlimit(2).
#pragma once

#include "mica/budget/size.hpp"
#include "mica_tools/advice/cards.hpp"
#include "mica_tools/advice/file_facts.hpp"
#include "mica_tools/advice/machine_facts.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::advice {

/// One line. A line that is fine has a topic and `found` alone.
struct Advice {
  std::string topic = {};    // "swap"
  std::string found = {};    // "8.0 GiB on /dev/sda2"
  std::string meaning = {};  // for a run; empty: fine
  std::string change = {};   // what would be better
  std::string command = {};  // that changes it; empty: there is none

  [[nodiscard]] bool fine() const noexcept { return meaning.empty(); }
};

/// The line without its topic: "none: fine", or "FOUND: MEANING; CHANGE: COMMAND".
[[nodiscard]] inline std::string text(const Advice& advice) {
  if (advice.fine()) return advice.found + ": fine";
  std::string line = join(advice.found, ": ", advice.meaning);
  if (!advice.change.empty()) line += "; " + advice.change;
  if (!advice.command.empty()) line += ": " + advice.command;
  return line;
}

/// The part of a plan that advice depends on.
struct RunFacts {
  std::uint64_t peak_bytes = 0;      // planned
  std::uint64_t streamed_bytes = 0;  // weights that are read from the file for each step
  bool maps = false;                 // weights are mapped: the page cache has them
  bool locks = false;                // mapped weights are locked in memory
};

namespace detail {

using budget::size_text;

[[nodiscard]] inline std::string quoted(const std::string& path) {
  const bool plain = path.find_first_not_of(
                         "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                         "/._-+:@%,=") == path.npos;
  if (plain) return path;
  std::string out = "'";
  for (const char c : path) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

[[nodiscard]] inline std::string write_command(std::string_view word, const std::string& file) {
  return join("echo ", word, " | sudo tee ", quoted(file));
}

/// "8.0 GiB on /dev/sda2, 4.0 GiB on /dev/zram0 (zram)".
[[nodiscard]] inline std::string areas_text(const std::vector<SwapArea>& areas) {
  std::string text;
  for (const SwapArea& area : areas)
    text += join(text.empty() ? "" : ", ", size_text(area.bytes), " on ", area.path,
                 area.in_memory ? " (zram)" : "");
  return text;
}

/// Keeps one run out of swap where systemd can do that; else turns swap off.
[[nodiscard]] inline std::string without_swap(const MachineFacts& facts) {
  if (facts.group_version == 2 && facts.has_systemd)
    return "systemd-run --user --scope -p MemorySwapMax=0 mica run MODEL";
  std::string command = "sudo swapoff";
  for (const SwapArea& area : *facts.swap) command += " " + quoted(area.path);
  return command;
}

/// Whether the kernel moves memory of processes to swap only when page cache is nearly gone.
[[nodiscard]] inline bool swaps_last(const MachineFacts& facts) noexcept {
  return facts.swappiness && *facts.swappiness <= 1;
}

[[nodiscard]] inline Advice on_swap(const MachineFacts& facts) {
  Advice line{.topic = "swap", .found = "none"};
  if (facts.swap->empty()) return line;
  const bool in_memory = std::all_of(facts.swap->begin(), facts.swap->end(),
                                     [](const SwapArea& area) { return area.in_memory; });
  line.found = areas_text(*facts.swap);
  if (facts.usable_swap() == 0) {
    line.found += ", none of it for the control group";
  } else if (swaps_last(facts)) {
    return line;
  } else if (in_memory) {
    line.meaning =
        "weights in memory can be moved there; quantised weights hardly compress, so that frees little "
        "memory and costs processor time";
  } else {
    line.meaning =
        "weights in memory can be moved there, and come back in small pieces, more slowly than streamed "
        "weights";
  }
  if (line.fine()) return line;
  const std::string command = without_swap(facts);
  line.change = command.starts_with("sudo swapoff") ? "turn it off" : "keep a run out of it";
  line.command = command;
  return line;
}

[[nodiscard]] inline Advice on_swappiness(const MachineFacts& facts) {
  Advice line{.topic = "swappiness", .found = join(*facts.swappiness)};
  if (facts.usable_swap() == 0) line.found += ", without effect since there is no swap";
  if (facts.usable_swap() == 0 || swaps_last(facts)) return line;
  line.meaning = "the kernel swaps out memory of processes although it could drop page cache";
  line.change = "let it drop page cache first";
  const bool of_machine = facts.swappiness_file == "/proc/sys/vm/swappiness";
  line.command =
      of_machine ? std::string("sudo sysctl vm.swappiness=1") : write_command("1", facts.swappiness_file);
  return line;
}

[[nodiscard]] inline Advice on_zswap(const MachineFacts& facts) {
  Advice line{.topic = "zswap", .found = "off"};
  if (!facts.zswap->on) return line;
  line.found = join("on (", facts.zswap->compressor, ", at most ", facts.zswap->max_percent, " % of memory)");
  const bool none = std::any_of(facts.groups.begin(), facts.groups.end(),
                                [](const Group& group) { return group.zswap == std::uint64_t{0}; });
  if (facts.usable_swap() == 0) line.found += ", without effect since there is no swap";
  if (none) line.found += ", not for the control group";
  if (facts.usable_swap() == 0 || none) return line;
  line.meaning =
      "swapped pages are compressed in memory first; quantised weights hardly compress, so that frees little "
      "memory and costs processor time";
  line.change = "turn it off";
  line.command = write_command("N", "/sys/module/zswap/parameters/enabled");
  return line;
}

/// Policy 0 refuses a single request alone that is larger than memory and swap together; 1 refuses none.
/// needed: bytes of a run.
[[nodiscard]] inline Advice on_overcommit(const MachineFacts& facts, std::uint64_t needed) {
  Advice line{.topic = "overcommit", .found = join(*facts.overcommit)};
  if (*facts.overcommit == 0) line.found += " (heuristic)";
  if (*facts.overcommit == 1) line.found += " (always)";
  if (*facts.overcommit == 2) line.found += " (never)";
  const auto left = facts.commit_left();
  if (!left) return line;
  line.found += join(", ", size_text(*facts.committed), " of ", size_text(*facts.commit_limit), " committed");
  if (*left >= needed) return line;
  line.meaning = join("the kernel refuses more than the other ", size_text(*left),
                      "; a run that needs more ends with exit code 4");
  line.change = "allow more, or give a smaller --memory";
  line.command = "sudo sysctl vm.overcommit_memory=0";
  return line;
}

/// Where a fault may not compact memory, it gets a huge page only if a free one exists.
[[nodiscard]] inline bool compacts(const std::string& defrag) noexcept {
  return defrag != "never" && defrag != "defer";
}

[[nodiscard]] inline Advice on_huge_pages(const MachineFacts& facts) {
  constexpr const char* slower =
      "reads of weights into small pages were a third slower where it was measured";
  Advice line{.topic = "huge pages", .found = "none in this kernel"};
  if (!facts.huge_pages) {
    line.meaning = slower;
    line.change = "use a kernel with CONFIG_TRANSPARENT_HUGEPAGE";
    return line;
  }
  const HugePages& pages = *facts.huge_pages;
  line.found = pages.enabled;
  if (pages.off_for_us) {
    line.found += ", off for this process";
    line.meaning = join("the program that started mica turned them off (PR_SET_THP_DISABLE); ", slower);
    line.change = "start mica from another program";
  } else if (pages.enabled == "never") {
    line.meaning = slower;
    line.change = "allow them where a program asks for them";
    line.command = write_command("madvise", pages.enabled_file);
  } else if (!compacts(pages.defrag)) {
    line.found += join(", defrag ", pages.defrag);
    line.meaning = join("weights get huge pages only where free ones exist already; ", slower);
    line.change = "let the kernel make them where a program asks for them";
    line.command = write_command("madvise", "/sys/kernel/mm/transparent_hugepage/defrag");
  }
  return line;
}

/// The words of a limit in a shell: `ulimit -v`, `prlimit --as`.
struct LimitWords {
  std::string topic, shell, long_flag;
};

/// Raises a soft limit as far as the shell may; the hard one needs root.
[[nodiscard]] inline std::string raise_command(const ProcessLimit& limit, const LimitWords& words) {
  if (!limit.hard) return join("ulimit -S ", words.shell, " unlimited");
  return join("sudo prlimit --pid $$ --", words.long_flag, "=unlimited");
}

[[nodiscard]] inline std::string limit_text(const std::optional<ProcessLimit>& limit,
                                            const std::string& shell) {
  return limit->soft ? join(size_text(*limit->soft), " (ulimit ", shell, ")") : std::string("no limit");
}

/// Memory of the machine or of its tightest control group.
[[nodiscard]] inline std::uint64_t whole_memory(const MachineFacts& facts) noexcept {
  return std::min(facts.memory.installed, facts.memory.cgroup);
}

/// A limit that is below `needed` bytes; line: its meaning and what to change, without the rest.
[[nodiscard]] inline Advice on_limit(const std::optional<ProcessLimit>& limit, const LimitWords& words,
                                     std::uint64_t needed, Advice line) {
  line.topic = words.topic;
  line.found = limit_text(limit, words.shell);
  if (!limit->soft || *limit->soft >= needed) return {.topic = line.topic, .found = line.found};
  line.command = raise_command(*limit, words);
  return line;
}

[[nodiscard]] inline Advice on_address_space(const MachineFacts& facts, std::uint64_t needed) {
  return on_limit(
      facts.address_space, {"address space", "-v", "as"}, needed,
      {.meaning = "a run gets less than memory has; files that are mapped or streamed count with their size",
       .change = "raise it"});
}

[[nodiscard]] inline Advice on_data(const MachineFacts& facts, std::uint64_t needed) {
  return on_limit(facts.data, {"data limit", "-d", "data"}, needed,
                  {.meaning = "weights, keys and values count; a run that needs more ends with exit code 4",
                   .change = "raise it, or give a smaller --memory"});
}

[[nodiscard]] inline Advice on_locked(const MachineFacts& facts) {
  Advice line{.topic = "locked memory", .found = limit_text(facts.locked, "-l")};
  if (facts.may_lock) line.found = "no limit";
  if (facts.locked->soft && !facts.may_lock) line.found += ", which --weights mapped-locked alone uses";
  return line;
}

/// "/a/b memory.max 4.0 GiB, memory.high 3.0 GiB"; empty for a group without limits.
[[nodiscard]] inline std::string group_text(const Group& group, int version) {
  std::string limits;
  const auto add = [&](const char* name, const std::optional<std::uint64_t>& bytes) {
    if (bytes) limits += join(limits.empty() ? " " : ", ", name, " ", size_text(*bytes));
  };
  if (version == 2) {
    add("memory.max", group.max);
    add("memory.high", group.high);
    add("memory.swap.max", group.swap);
    add("memory.zswap.max", group.zswap);
  } else {
    add("memory.limit_in_bytes", group.max);
    if (group.swap) add("memory.memsw.limit_in_bytes", group.max.value_or(0) + *group.swap);
  }
  return limits.empty() ? limits : group.name + limits;
}

/// The group with the smallest memory.high that is below every memory.max; null if there is none.
[[nodiscard]] inline const Group* slowed_group(const MachineFacts& facts) noexcept {
  const Group* found = nullptr;
  std::uint64_t max = facts.memory.installed;
  for (const Group& group : facts.groups) {
    max = std::min(max, group.max.value_or(max));
    if (group.high && (found == nullptr || *group.high < *found->high)) found = &group;
  }
  return found != nullptr && *found->high < max ? found : nullptr;
}

[[nodiscard]] inline Advice on_groups(const MachineFacts& facts) {
  Advice line{.topic = "control group", .found = "none with a limit of memory"};
  if (facts.group_version == 0) return line;
  std::string limits;
  for (const Group& group : facts.groups) {
    const std::string text = group_text(group, facts.group_version);
    if (!text.empty()) limits += join(limits.empty() ? "" : "; ", text);
  }
  line.found = join("version ", facts.group_version, ", ", limits.empty() ? "no limit" : limits);
  const Group* const slowed = slowed_group(facts);
  if (slowed == nullptr) return line;
  line.meaning =
      "above memory.high the kernel slows the group down and takes memory from it, so the budget of a run "
      "ends there";
  line.change = "raise it to use more";
  line.command = write_command("max", slowed->folder + "/memory.high");
  return line;
}

[[nodiscard]] inline Advice on_card(const Card& card) {
  Advice line{.topic = "graphics", .found = card.name};
  const auto with = [&](const std::optional<std::uint64_t>& bytes, std::string_view what) {
    if (bytes) line.found += join(", ", size_text(*bytes), what);
  };
  with(card.own_bytes, card.unified ? " set aside" : card.is_node ? " that count as memory too" : "");
  with(card.shared_bytes, " of main memory at most");
  if (card.unified && !card.shared_bytes) line.found += ", shares main memory";
  if (card.unified || card.own_bytes || !card.accepts) return line;
  with(card.window_bytes, " visible on the bus, which is not its memory");
  line.meaning =
      "no file tells the size of its memory, so mica fit does not count it (a run uses the processor)";
  line.change = "give it";
  line.command = "mica fit --vram SIZE";
  return line;
}

[[nodiscard]] inline std::string copy_command(const FileFacts& file) {
  return join("cp ", quoted(file.path), " FOLDER");
}

[[nodiscard]] inline Advice on_file_system(const FileFacts& file) {
  Advice line{.topic = "file system", .found = join(file.type, ", mounted at ", file.mount)};
  line.change = "copy the file to a disk of this machine";
  line.command = copy_command(file);
  if (file.storage == Storage::memory) {
    line.meaning = "the file takes memory already, and weights that are loaded from it take it again";
    line.change = "use it in place, or move it to a disk";
    line.command = join("mica run ", quoted(file.path), " --weights mapped");
  } else if (file.storage == Storage::network) {
    line.meaning = "a load, and each token with streamed weights, reads over the network";
  } else if (file.storage == Storage::host) {
    line.meaning = "a load, and each token with streamed weights, reads through the host of this machine";
  } else if (file.storage == Storage::program) {
    line.meaning = "a load, and each token with streamed weights, reads through a program (FUSE)";
  } else {
    line.change = line.command = {};
  }
  return line;
}

[[nodiscard]] inline Advice on_disk(const FileFacts& file) {
  Advice line{.topic = "disk", .found = file.disk};
  if (file.is_virtual_disk()) {
    line.found += ", a virtual disk, whose kind is not visible here";
  } else if (!file.rotational) {
    line.found += ", of unknown kind";
  } else if (!*file.rotational) {
    line.found += ", not rotational";
  } else {
    line.found += ", rotational";
    line.meaning = "streamed weights are read at the speed of this disk for each token";
    line.change = "use settings that fit in memory, or move the file to an SSD";
    line.command = join("mica plan ", quoted(file.path), " --solve");
  }
  return line;
}

[[nodiscard]] inline Advice on_direct_reads(const FileFacts& file) {
  Advice line{.topic = "direct reads", .found = *file.reads_direct ? "supported" : "refused"};
  if (*file.reads_direct) return line;
  line.meaning =
      "weights are read through the page cache and dropped from it again, which costs processor time";
  line.change = "copy the file to a file system with direct reads, such as ext4 or xfs";
  line.command = copy_command(file);
  return line;
}

/// Appends a line that is not fine.
inline void add_warning(std::vector<Advice>& lines, Advice line) {
  if (!line.fine()) lines.push_back(std::move(line));
}

}  // namespace detail

/// A line for each subject of a machine. What is not known has no line; without Linux there are none.
[[nodiscard]] inline std::vector<Advice> advise(const MachineFacts& facts) {
  std::vector<Advice> lines;
  if (facts.swap) lines.push_back(detail::on_swap(facts));
  if (facts.swappiness) lines.push_back(detail::on_swappiness(facts));
  if (facts.zswap) lines.push_back(detail::on_zswap(facts));
  if (facts.overcommit) lines.push_back(detail::on_overcommit(facts, facts.memory.usable()));
  if (facts.is_linux) lines.push_back(detail::on_huge_pages(facts));
  if (facts.address_space) lines.push_back(detail::on_address_space(facts, detail::whole_memory(facts)));
  if (facts.data) lines.push_back(detail::on_data(facts, detail::whole_memory(facts)));
  if (facts.locked) lines.push_back(detail::on_locked(facts));
  if (facts.is_linux) lines.push_back(detail::on_groups(facts));
  return lines;
}

/// A line for each graphics processor.
[[nodiscard]] inline std::vector<Advice> advise(const std::vector<Card>& cards) {
  std::vector<Advice> lines;
  for (const Card& card : cards) lines.push_back(detail::on_card(card));
  return lines;
}

/// A line for the file system of a file, its disk and direct reads. What is not known has no line.
[[nodiscard]] inline std::vector<Advice> advise(const FileFacts& file) {
  std::vector<Advice> lines;
  if (!file.type.empty()) lines.push_back(detail::on_file_system(file));
  if (!file.disk.empty()) lines.push_back(detail::on_disk(file));
  if (file.reads_direct) lines.push_back(detail::on_direct_reads(file));
  return lines;
}

/// The lines that concern one run, none of which is fine. file: null for a model on a server.
[[nodiscard]] inline std::vector<Advice> advise(const MachineFacts& facts, const FileFacts* file,
                                                const RunFacts& run) {
  std::vector<Advice> lines;
  const std::uint64_t peak = run.peak_bytes;
  const std::uint64_t file_bytes = file == nullptr ? 0 : file->bytes;
  const bool fills = peak > facts.memory.usable() / 4 * 3 && !run.maps;
  const std::string of_memory = join(", and the plan takes ", budget::size_text(peak), " of ",
                                     budget::size_text(facts.memory.usable()));
  if (facts.swap && fills) {
    Advice line = detail::on_swap(facts);
    line.found += of_memory;
    if (line.fine() && facts.usable_swap() == 0 && peak > facts.memory.usable() / 10 * 9) {
      line.meaning =
          "if other processes need more, the kernel kills a process unless the governor releases "
          "enough";
      line.change = "leave some memory";
      line.command =
          join("mica run ", file == nullptr ? "MODEL" : detail::quoted(file->path), " --memory 90%");
    }
    detail::add_warning(lines, std::move(line));
    if (facts.swappiness) detail::add_warning(lines, detail::on_swappiness(facts));
  }
  if (facts.overcommit) detail::add_warning(lines, detail::on_overcommit(facts, peak));
  if (facts.is_linux && !run.maps) detail::add_warning(lines, detail::on_huge_pages(facts));
  const std::uint64_t addresses = peak + (run.maps || run.streamed_bytes > 0 ? file_bytes : 0);
  if (facts.address_space) detail::add_warning(lines, detail::on_address_space(facts, addresses));
  if (facts.data) detail::add_warning(lines, detail::on_data(facts, peak));
  if (run.locks && facts.locked && !facts.may_lock && facts.locked->soft.value_or(file_bytes) < file_bytes)
    lines.push_back({"locked memory", detail::limit_text(facts.locked, "-l"),
                     "--weights mapped-locked cannot lock the file, so its pages may leave memory",
                     "raise it", detail::raise_command(*facts.locked, {"locked memory", "-l", "memlock"})});
  const Group* const slowed = detail::slowed_group(facts);
  if (slowed != nullptr && *slowed->high < peak) detail::add_warning(lines, detail::on_groups(facts));
  if (file == nullptr) return lines;
  const bool reads = run.streamed_bytes > 0;
  if (!file->type.empty() && (reads || (file->storage == Storage::memory && !run.maps)))
    detail::add_warning(lines, detail::on_file_system(*file));
  if (!file->disk.empty() && reads) detail::add_warning(lines, detail::on_disk(*file));
  if (file->reads_direct && reads) detail::add_warning(lines, detail::on_direct_reads(*file));
  return lines;
}

}  // namespace mica::advice
