// SPDX-License-Identifier: Apache-2.0
//
// A /proc and a /sys of a test's own, and the lines of advice about them.
#pragma once

#include "io/temporary_folder.hpp"
#include "mica_tools/advice/advice.hpp"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace mica::test {

/// A machine with 16 GiB, of which 12 GiB are available, and with settings that are all fine.
class MachineTree {
 public:
  MachineTree() {
    put("proc/meminfo",
        "MemTotal:       16777216 kB\nMemAvailable:   12582912 kB\n"
        "CommitLimit:    10485760 kB\nCommitted_AS:    2097152 kB\n");
    put("proc/swaps", swap_header);
    put("proc/sys/vm/swappiness", "60\n");
    put("proc/sys/vm/overcommit_memory", "0\n");
    put("proc/self/limits",
        "Limit                     Soft Limit           Hard Limit           Units     \n"
        "Max data size             unlimited            unlimited            bytes     \n"
        "Max locked memory         8388608              8388608              bytes     \n"
        "Max address space         unlimited            unlimited            bytes     \n");
    put("proc/self/status", "Name:\tmica\nCapEff:\t0000000000000000\nTHP_enabled:\t1\n");
    put("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
    put("sys/kernel/mm/transparent_hugepage/defrag", "always defer defer+madvise [madvise] never\n");
    put("sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "2097152\n");
    put("sys/kernel/mm/transparent_hugepage/hugepages-2048kB/enabled", "always [inherit] madvise never\n");
    put("sys/module/zswap/parameters/enabled", "N\n");
    put("sys/module/zswap/parameters/compressor", "zstd\n");
    put("sys/module/zswap/parameters/max_pool_percent", "20\n");
  }

  void put(const std::string& name, std::string_view text) const {
    std::filesystem::create_directories(std::filesystem::path(folder_.path(name)).parent_path());
    folder_.file(name, text);
  }
  void link(const std::string& name, const std::string& target) const {
    std::filesystem::create_directories(std::filesystem::path(folder_.path(name)).parent_path());
    std::filesystem::create_symlink(target, folder_.path(name));
  }
  void remove(const std::string& name) const { std::filesystem::remove_all(folder_.path(name)); }

  void swap(std::string_view lines) const {
    put("proc/swaps", std::string(swap_header) + std::string(lines));
  }
  /// Groups of version 2, the process in /user/job.
  void groups_v2() const {
    put("proc/self/cgroup", "0::/user/job\n");
    put("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  }
  /// A disk with one partition, mounted at /data.
  void disk(const std::string& name, bool rotational) const {
    const std::string folder = "sys/devices/block/" + name + "/";
    put(folder + "queue/rotational", rotational ? "1\n" : "0\n");
    put(folder + name + "1/partition", "1\n");
    link("sys/dev/block/8:1", "../../devices/block/" + name + "/" + name + "1");
    mounts("36 25 8:1 / /data rw - ext4 /dev/" + name + "1 rw\n");
  }
  /// Mounts in addition to a root whose disk is not visible.
  void mounts(const std::string& lines) const {
    put("proc/self/mountinfo", "25 1 0:31 / / rw - overlay overlay rw\n" + lines);
  }

  [[nodiscard]] std::string root() const { return folder_.path("").substr(0, folder_.path("").size() - 1); }
  [[nodiscard]] advice::MachineFacts facts() const { return advice::read_machine_facts(root()); }
  [[nodiscard]] advice::FileFacts file(const std::string& path) const {
    return advice::read_file_facts(root(), path);
  }
  /// The line about a topic; empty if there is none.
  [[nodiscard]] std::string line(std::string_view topic) const {
    return line_of(topic == "graphics" ? advice::advise(advice::read_cards(root())) : advice::advise(facts()),
                   topic);
  }

  [[nodiscard]] static std::string line_of(const std::vector<advice::Advice>& lines, std::string_view topic) {
    for (const advice::Advice& line : lines)
      if (line.topic == topic) return advice::text(line);
    return {};
  }

 private:
  static constexpr std::string_view swap_header = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n";

  TemporaryFolder folder_;
};

}  // namespace mica::test
