// SPDX-License-Identifier: Apache-2.0

#include "mica_tools/advice/advice.hpp"

#include "advice/machine_tree.hpp"

#include <doctest/doctest.h>

#include <algorithm>

namespace mica::test::advice_test {
namespace {

constexpr std::uint64_t gib = std::uint64_t{1} << 30;

constexpr std::string_view sda2 = "/dev/sda2                               partition\t8388608\t\t0\t\t-2\n";
constexpr std::string_view zram0 = "/dev/zram0                              partition\t4194304\t\t0\t\t100\n";

/// The topics of a plan's lines.
std::vector<std::string> topics(const std::vector<advice::Advice>& lines) {
  std::vector<std::string> names;
  for (const advice::Advice& line : lines) {
    CHECK_FALSE(line.fine());
    names.push_back(line.topic);
  }
  return names;
}

using Topics = std::vector<std::string>;

}  // namespace

TEST_CASE("a machine whose settings are fine has a short line for each of them") {
  const MachineTree tree;
  std::string all;
  for (const advice::Advice& line : advice::advise(tree.facts()))
    all += join(line.topic, ": ", advice::text(line), "\n");
  CHECK(all ==
        "swap: none: fine\n"
        "swappiness: 60, without effect since there is no swap: fine\n"
        "zswap: off: fine\n"
        "overcommit: 0 (heuristic): fine\n"
        "huge pages: madvise: fine\n"
        "address space: no limit: fine\n"
        "data limit: no limit: fine\n"
        "locked memory: 8.0 MiB (ulimit -l), which --weights mapped-locked alone uses: fine\n"
        "control group: none with a limit of memory: fine\n");
}

TEST_CASE("a system without /proc has no advice") {
  const MachineTree tree;
  tree.remove("proc");
  tree.remove("sys");
  CHECK(advice::advise(tree.facts()).empty());
  CHECK(advice::advise(advice::read_cards(tree.root())).empty());
  CHECK(advice::advise(tree.file("/data/m.gguf")).empty());
}

TEST_CASE("swap on a disk: weights may be moved there, unless the kernel drops page cache first") {
  const MachineTree tree;
  tree.swap(sda2);
  CHECK(tree.line("swap") ==
        "8.0 GiB on /dev/sda2: weights in memory can be moved there, and come back in small pieces, more "
        "slowly than streamed weights; turn it off: sudo swapoff /dev/sda2");
  CHECK(tree.line("swappiness") ==
        "60: the kernel swaps out memory of processes although it could drop page cache; let it drop page "
        "cache first: sudo sysctl vm.swappiness=1");
  tree.put("proc/sys/vm/swappiness", "1\n");
  CHECK(tree.line("swap") == "8.0 GiB on /dev/sda2: fine");
  CHECK(tree.line("swappiness") == "1: fine");
}

TEST_CASE("with systemd and version 2 of control groups one run is kept out of swap") {
  const MachineTree tree;
  tree.swap(sda2);
  tree.groups_v2();
  tree.put("run/systemd/system/x", "");
  CHECK(tree.line("swap") ==
        "8.0 GiB on /dev/sda2: weights in memory can be moved there, and come back in small pieces, more "
        "slowly than streamed weights; keep a run out of it: systemd-run --user --scope -p MemorySwapMax=0 "
        "mica run MODEL");
  tree.put("sys/fs/cgroup/user/memory.swap.max", "0\n");
  CHECK(tree.line("swap") == "8.0 GiB on /dev/sda2, none of it for the control group: fine");
  CHECK(tree.line("swappiness") == "60, without effect since there is no swap: fine");
  CHECK(tree.line("control group") == "version 2, /user memory.swap.max 0 B: fine");
}

TEST_CASE("zram: what is moved there stays in memory") {
  const MachineTree tree;
  tree.swap(zram0);
  CHECK(
      tree.line("swap") ==
      "4.0 GiB on /dev/zram0 (zram): weights in memory can be moved there; quantised weights hardly "
      "compress, so that frees little memory and costs processor time; turn it off: sudo swapoff /dev/zram0");
  tree.swap(std::string(zram0) + std::string(sda2));
  CHECK(
      tree.line("swap").starts_with("4.0 GiB on /dev/zram0 (zram), 8.0 GiB on /dev/sda2: weights in memory"));
  tree.put("proc/sys/vm/swappiness", "0\n");
  CHECK(tree.line("swap") == "4.0 GiB on /dev/zram0 (zram), 8.0 GiB on /dev/sda2: fine");
}

TEST_CASE("zswap matters where there is swap") {
  const MachineTree tree;
  tree.put("sys/module/zswap/parameters/enabled", "Y\n");
  CHECK(tree.line("zswap") ==
        "on (zstd, at most 20 % of memory), without effect since there is no swap: fine");
  tree.swap(sda2);
  CHECK(
      tree.line("zswap") ==
      "on (zstd, at most 20 % of memory): swapped pages are compressed in memory first; quantised weights "
      "hardly compress, so that frees little memory and costs processor time; turn it off: echo N | sudo tee "
      "/sys/module/zswap/parameters/enabled");
  tree.groups_v2();
  tree.put("sys/fs/cgroup/user/job/memory.zswap.max", "0\n");
  CHECK(tree.line("zswap") == "on (zstd, at most 20 % of memory), not for the control group: fine");
}

TEST_CASE("overcommit policy 2 refuses memory that is free; the others do not") {
  const MachineTree tree;
  tree.put("proc/sys/vm/overcommit_memory", "1\n");
  CHECK(tree.line("overcommit") == "1 (always): fine");
  tree.put("proc/sys/vm/overcommit_memory", "2\n");
  CHECK(tree.line("overcommit") ==
        "2 (never), 2.0 GiB of 10.0 GiB committed: the kernel refuses more than the other 8.0 GiB; a run "
        "that needs more ends with exit code 4; allow more, or give a smaller "
        "--memory: sudo sysctl vm.overcommit_memory=0");
  tree.put("proc/meminfo",
           "MemTotal: 16777216 kB\nMemAvailable: 4194304 kB\nCommitLimit: 16777216 kB\nCommitted_AS: 2097152 "
           "kB\n");
  CHECK(tree.line("overcommit") == "2 (never), 2.0 GiB of 16.0 GiB committed: fine");
}

TEST_CASE("huge pages: never costs speed, for all sizes, for one size, or for this process") {
  const std::string folder = "sys/kernel/mm/transparent_hugepage/";
  const std::string slower = "reads of weights into small pages were a third slower where it was measured; ";
  const MachineTree tree;
  tree.put(folder + "enabled", "always madvise [never]\n");
  CHECK(tree.line("huge pages") == "never: " + slower +
                                       "allow them where a program asks for them: echo madvise | sudo tee "
                                       "/sys/kernel/mm/transparent_hugepage/enabled");
  tree.put(folder + "hugepages-2048kB/enabled", "[always] inherit madvise never\n");
  CHECK(tree.line("huge pages") == "always: fine");
  tree.put(folder + "enabled", "[always] madvise never\n");
  tree.put(folder + "hugepages-2048kB/enabled", "always inherit madvise [never]\n");
  CHECK(tree.line("huge pages") == "never: " + slower +
                                       "allow them where a program asks for them: echo madvise | sudo tee "
                                       "/sys/kernel/mm/transparent_hugepage/hugepages-2048kB/enabled");
  tree.put(folder + "hugepages-2048kB/enabled", "always [inherit] madvise never\n");
  tree.put(folder + "defrag", "always [defer] defer+madvise madvise never\n");
  CHECK(tree.line("huge pages") ==
        "always, defrag defer: weights get huge pages only where free ones exist already; " + slower +
            "let the kernel make them where a program asks for them: echo madvise | sudo tee "
            "/sys/kernel/mm/transparent_hugepage/defrag");
  tree.put("proc/self/status", "THP_enabled:\t0\n");
  CHECK(tree.line("huge pages") ==
        "always, off for this process: the program that started mica turned them off (PR_SET_THP_DISABLE); " +
            slower + "start mica from another program");
  tree.remove(folder);
  CHECK(tree.line("huge pages") ==
        "none in this kernel: " + slower + "use a kernel with CONFIG_TRANSPARENT_HUGEPAGE");
}

TEST_CASE("control groups of version 1: memory and swap together, and a swappiness of their own") {
  const MachineTree tree;
  tree.swap(sda2);
  tree.put("proc/self/cgroup", "4:memory:/jobs/one\n0::/\n");
  tree.put("proc/self/mountinfo",
           "34 25 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
           "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
  const std::string job = "sys/fs/cgroup/memory/jobs/one/";
  tree.put(job + "memory.limit_in_bytes", "4294967296\n");
  tree.put(job + "memory.memsw.limit_in_bytes", "6442450944\n");
  tree.put(job + "memory.swappiness", "60\n");
  tree.put("sys/fs/cgroup/memory/jobs/memory.limit_in_bytes", "9223372036854771712\n");
  CHECK(tree.facts().usable_swap() == 2 * gib);
  CHECK(tree.line("control group") ==
        "version 1, /jobs/one memory.limit_in_bytes 4.0 GiB, memory.memsw.limit_in_bytes 6.0 GiB: fine");
  CHECK(tree.line("swappiness") ==
        "60: the kernel swaps out memory of processes although it could drop page cache; let it drop page "
        "cache first: echo 1 | sudo tee /sys/fs/cgroup/memory/jobs/one/memory.swappiness");
  tree.put(job + "memory.memsw.limit_in_bytes", "4294967296\n");
  CHECK(tree.line("swap") == "8.0 GiB on /dev/sda2, none of it for the control group: fine");
}

TEST_CASE("control groups of version 2: every level is shown, and memory.high below memory.max slows a run") {
  const MachineTree tree;
  tree.groups_v2();
  CHECK(tree.line("control group") == "version 2, no limit: fine");
  tree.put("sys/fs/cgroup/user/job/memory.max", "max\n");
  tree.put("sys/fs/cgroup/user/job/memory.high", "max\n");
  tree.put("sys/fs/cgroup/user/job/memory.swap.max", "max\n");
  tree.put("sys/fs/cgroup/user/memory.max", "6442450944\n");
  CHECK(tree.line("control group") == "version 2, /user memory.max 6.0 GiB: fine");
  tree.put("sys/fs/cgroup/user/memory.high", "5368709120\n");
  tree.put("sys/fs/cgroup/user/job/memory.max", "8589934592\n");
  CHECK(tree.line("control group") ==
        "version 2, /user/job memory.max 8.0 GiB; /user memory.max 6.0 GiB, memory.high 5.0 GiB: above "
        "memory.high the kernel slows the group down and takes memory from it, so the budget of a run ends "
        "there; raise it to use more: echo max | sudo tee /sys/fs/cgroup/user/memory.high");
  tree.put("sys/fs/cgroup/user/job/memory.max", "4294967296\n");  // ends before that
  CHECK(tree.line("control group") ==
        "version 2, /user/job memory.max 4.0 GiB; /user memory.max 6.0 GiB, memory.high 5.0 GiB: fine");
}

TEST_CASE("limits of the process below its memory are raised, by root where the hard one is lower") {
  const MachineTree tree;
  tree.put("proc/self/limits",
           "Max data size             4294967296           4294967296           bytes     \n"
           "Max locked memory         8388608              8388608              bytes     \n"
           "Max address space         8589934592           unlimited            bytes     \n");
  CHECK(tree.line("address space") ==
        "8.0 GiB (ulimit -v): a run gets less than memory has; files that are mapped or streamed count with "
        "their size; raise it: ulimit -S -v unlimited");
  CHECK(tree.line("data limit") ==
        "4.0 GiB (ulimit -d): weights, keys and values count; a run that needs more ends with exit code 4; "
        "raise it, or give a smaller --memory: sudo prlimit --pid $$ --data=unlimited");
  tree.put("proc/self/status", "CapEff:\t000001ffffffffff\n");  // with CAP_IPC_LOCK
  CHECK(tree.line("locked memory") == "no limit: fine");
  tree.put("proc/self/limits",
           "Max address space         68719476736          68719476736          bytes     \n");
  CHECK(tree.line("address space") == "64.0 GiB (ulimit -v): fine");
}

TEST_CASE("a plan repeats what concerns it: swap, where the model nearly fills the memory") {
  const MachineTree tree;
  tree.swap(sda2);
  CHECK(advice::advise(tree.facts(), nullptr, {.peak_bytes = 2 * gib}).empty());
  const auto lines = advice::advise(tree.facts(), nullptr, {.peak_bytes = 10 * gib});
  CHECK(topics(lines) == Topics{"swap", "swappiness"});
  CHECK(
      MachineTree::line_of(lines, "swap") ==
      "8.0 GiB on /dev/sda2, and the plan takes 10.0 GiB of 12.0 GiB: weights in memory can be moved there, "
      "and come back in small pieces, more slowly than streamed weights; turn it off: sudo swapoff "
      "/dev/sda2");
  CHECK(advice::advise(tree.facts(), nullptr, {.peak_bytes = 10 * gib, .maps = true}).empty());
  tree.swap("");
  CHECK(advice::advise(tree.facts(), nullptr, {.peak_bytes = 10 * gib}).empty());
  CHECK(MachineTree::line_of(advice::advise(tree.facts(), nullptr, {.peak_bytes = 11 * gib}), "swap") ==
        "none, and the plan takes 11.0 GiB of 12.0 GiB: if other processes need more, the kernel kills a "
        "process unless the governor releases enough; leave some memory: mica run MODEL --memory 90%");
}

TEST_CASE("a plan repeats limits that it exceeds, and no others") {
  const MachineTree tree;
  tree.put("proc/sys/vm/overcommit_memory", "2\n");
  tree.put("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n");
  tree.put("proc/self/limits",
           "Max data size             4294967296           unlimited            bytes     \n"
           "Max locked memory         8388608              unlimited            bytes     \n"
           "Max address space         6442450944           unlimited            bytes     \n");
  tree.groups_v2();
  tree.put("sys/fs/cgroup/user/memory.high", "5368709120\n");
  const auto of = [&](advice::RunFacts run, std::uint64_t file_bytes) {
    advice::FileFacts file;
    file.bytes = file_bytes;
    return topics(advice::advise(tree.facts(), &file, run));
  };
  CHECK(of({.peak_bytes = 1 * gib}, gib) == Topics{"huge pages"});
  CHECK(of({.peak_bytes = 1 * gib, .streamed_bytes = gib}, 7 * gib) == Topics{"huge pages", "address space"});
  CHECK(of({.peak_bytes = 3 * gib, .maps = true, .locks = true}, gib) == Topics{"locked memory"});
  CHECK(of({.peak_bytes = 9 * gib}, gib) ==
        Topics{"swap", "overcommit", "huge pages", "address space", "data limit", "control group"});
}

TEST_CASE("a plan repeats what its file costs: memory on tmpfs, and slow disks for streamed weights") {
  const MachineTree tree;
  tree.disk("sda", true);
  tree.put("proc/self/mountinfo",
           "25 1 0:31 / / rw - overlay overlay rw\n36 25 8:1 / /data rw - ext4 /dev/sda1 rw\n"
           "37 25 0:40 / /tmp rw - tmpfs tmpfs rw\n38 25 0:41 / /net rw - nfs4 server:/models rw\n");
  const auto of = [&](const std::string& path, advice::RunFacts run) {
    advice::FileFacts file = tree.file(path);
    file.reads_direct = false;
    run.peak_bytes = gib;
    return topics(advice::advise(tree.facts(), &file, run));
  };
  const advice::RunFacts loads, streams{.streamed_bytes = gib}, maps{.maps = true};
  CHECK(of("/data/m.gguf", loads).empty());
  CHECK(of("/data/m.gguf", streams) == Topics{"disk", "direct reads"});
  CHECK(of("/tmp/m.gguf", loads) == Topics{"file system"});
  CHECK(of("/tmp/m.gguf", maps).empty());
  CHECK(of("/net/m.gguf", loads).empty());
  CHECK(of("/net/m.gguf", streams) == Topics{"file system", "direct reads"});
}

TEST_CASE("commands quote names that a shell would read otherwise") {
  const MachineTree tree;
  tree.mounts("38 25 0:41 / /my\\040models rw - nfs server:/models rw\n");
  CHECK(MachineTree::line_of(advice::advise(tree.file("/my models/it's.gguf")), "file system") ==
        "nfs, mounted at /my models: a load, and each token with streamed weights, reads over the network; "
        "copy the file to a disk of this machine: cp '/my models/it'\\''s.gguf' FOLDER");
}

}  // namespace mica::test::advice_test
