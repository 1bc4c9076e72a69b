// SPDX-License-Identifier: Apache-2.0

#include "mica/budget/limits.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace limits_test {

using mica::budget::CpuLimits;
using mica::budget::MemoryLimits;
using mica::budget::read_cpu_quota;
using mica::budget::read_memory_limits;

namespace {

constexpr std::uint64_t mib = std::uint64_t{1} << 20;

// A root folder with a /proc and a /sys of our own.
class Machine {
 public:
  Machine() {
    std::string pattern = (std::filesystem::temp_directory_path() / "mica-limits-XXXXXX").string();
    root_ = ::mkdtemp(pattern.data());
  }
  ~Machine() { std::filesystem::remove_all(root_); }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  void write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  const std::string& root() const { return root_; }

 private:
  std::string root_;
};

const char* const v2_mount =
    "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
const char* const v1_memory =
    "34 25 0:30 / /sys/fs/cgroup/memory rw,nosuid shared:9 - cgroup cgroup rw,memory\n";
const char* const v1_cpu =
    "35 25 0:31 / /sys/fs/cgroup/cpu,cpuacct rw shared:10 - cgroup cgroup rw,cpu,cpuacct\n";

}  // namespace

TEST_CASE("meminfo gives installed and available memory") {
  Machine machine;
  machine.write("/proc/meminfo",
                "MemTotal:        6291456 kB\nMemFree:          100000 kB\nMemAvailable:    5242880 kB\n");
  const MemoryLimits limits = read_memory_limits(machine.root());
  CHECK(limits.installed == 6144 * mib);
  CHECK(limits.available == 5120 * mib);
  CHECK(limits.cgroup == MemoryLimits::unlimited);
  CHECK(limits.usable() == 5120 * mib);
  CHECK(limits.authority() == "the machine's memory");
}

TEST_CASE("a machine without these files has no limits, and says so") {
  Machine machine;
  const MemoryLimits limits = read_memory_limits(machine.root());
  CHECK(limits.usable() == MemoryLimits::unlimited);
  CHECK(limits.authority() == "no limit");
  CHECK(std::isinf(read_cpu_quota(machine.root())));
}

TEST_CASE("version 2: the tightest group from ours upward counts, memory.high included") {
  Machine machine;
  machine.write("/proc/self/mountinfo", v2_mount);
  machine.write("/proc/self/cgroup", "0::/user.slice/app.scope\n");
  machine.write("/sys/fs/cgroup/user.slice/app.scope/memory.max", "max\n");
  machine.write("/sys/fs/cgroup/user.slice/app.scope/memory.high", "3221225472\n");
  machine.write("/sys/fs/cgroup/user.slice/memory.max", "4294967296\n");
  CHECK(read_memory_limits(machine.root()).cgroup == 3072 * mib);

  machine.write("/sys/fs/cgroup/user.slice/memory.max", "1073741824\n");
  CHECK(read_memory_limits(machine.root()).cgroup == 1024 * mib);
  CHECK(read_memory_limits(machine.root()).authority() == "the control group");
}

TEST_CASE("what others use in a group is not left for us, but page cache is") {
  Machine machine;
  machine.write("/proc/self/mountinfo", v2_mount);
  machine.write("/proc/self/cgroup", "0::/app\n");
  machine.write("/sys/fs/cgroup/app/memory.max", std::to_string(1000 * mib));
  machine.write("/sys/fs/cgroup/app/memory.current", std::to_string(900 * mib));
  machine.write("/sys/fs/cgroup/app/memory.stat", "anon 1\nfile 9\ninactive_file " +
                                                      std::to_string(500 * mib) + "\nactive_file " +
                                                      std::to_string(100 * mib) + "\n");
  const MemoryLimits limits = read_memory_limits(machine.root());
  CHECK(limits.cgroup == 1000 * mib);
  CHECK(limits.cgroup_left == 700 * mib);
  CHECK(limits.usable() == 700 * mib);

  machine.write("/sys/fs/cgroup/app/memory.stat", "");
  machine.write("/sys/fs/cgroup/app/memory.current", std::to_string(2000 * mib));
  CHECK(read_memory_limits(machine.root()).cgroup_left == 0);
}

TEST_CASE("version 1: limits up the hierarchy count, and its word for no limit is understood") {
  Machine machine;
  machine.write("/proc/self/mountinfo", v1_memory);
  machine.write("/proc/self/cgroup", "9:name=systemd:/\n4:memory:/jobs/one\n1:cpu:/\n");
  machine.write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  machine.write("/sys/fs/cgroup/memory/jobs/one/memory.limit_in_bytes", "9223372036854771712\n");
  CHECK(read_memory_limits(machine.root()).cgroup == MemoryLimits::unlimited);

  machine.write("/sys/fs/cgroup/memory/jobs/memory.limit_in_bytes", "2147483648\n");
  machine.write("/sys/fs/cgroup/memory/jobs/memory.usage_in_bytes", "1073741824\n");
  machine.write("/sys/fs/cgroup/memory/jobs/memory.stat", "inactive_file 7\ntotal_inactive_file 1048576\n");
  const MemoryLimits limits = read_memory_limits(machine.root());
  CHECK(limits.cgroup == 2048 * mib);
  CHECK(limits.cgroup_left == 1025 * mib);
}

TEST_CASE("a container that mounts its own group finds its limit at the mount") {
  Machine machine;
  machine.write("/proc/self/mountinfo",
                "700 690 0:30 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
  machine.write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "536870912\n");
  machine.write("/proc/self/cgroup", "4:memory:/docker/abc\n");
  CHECK(read_memory_limits(machine.root()).cgroup == 512 * mib);

  machine.write("/proc/self/cgroup", "4:memory:/docker/abc/inner\n");
  machine.write("/sys/fs/cgroup/memory/inner/memory.limit_in_bytes", "268435456\n");
  CHECK(read_memory_limits(machine.root()).cgroup == 256 * mib);

  machine.write("/proc/self/cgroup", "4:memory:/docker/abcdef\n");  // begins alike, is another
  CHECK(read_memory_limits(machine.root()).cgroup == 512 * mib);

  machine.write("/proc/self/cgroup", "4:memory:/../../elsewhere\n");  // outside the namespace
  CHECK(read_memory_limits(machine.root()).cgroup == 512 * mib);
}

TEST_CASE("mount points with spaces are found") {
  Machine machine;
  machine.write("/proc/self/mountinfo", "30 23 0:26 / /my\\040groups rw - cgroup2 none rw\n");
  machine.write("/proc/self/cgroup", "0::/a\n");
  machine.write("/my groups/a/memory.max", "1048576\n");
  CHECK(read_memory_limits(machine.root()).cgroup == mib);
}

TEST_CASE("damaged files are no limits") {
  Machine machine;
  machine.write("/proc/meminfo", "MemTotal: many kB\nMemAvailable: 99999999999999999999 kB\n");
  machine.write("/proc/self/mountinfo",
                "30\n\n - \n30 23 0:26 / /sys/fs/cgroup rw - cgroup2\n" + std::string(v2_mount));
  machine.write("/proc/self/cgroup", "\n0\n0::\n");
  machine.write("/sys/fs/cgroup/memory.max", "much\n");
  machine.write("/sys/fs/cgroup/cpu.max", "\n");
  CHECK(read_memory_limits(machine.root()).usable() == MemoryLimits::unlimited);
  CHECK(std::isinf(read_cpu_quota(machine.root())));
}

TEST_CASE("version 2: the tightest CPU quota from our group upward counts") {
  Machine machine;
  machine.write("/proc/self/mountinfo", v2_mount);
  machine.write("/proc/self/cgroup", "0::/a/b\n");
  machine.write("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  CHECK(std::isinf(read_cpu_quota(machine.root())));
  machine.write("/sys/fs/cgroup/a/cpu.max", "150000 100000\n");
  CHECK(read_cpu_quota(machine.root()) == 1.5);
  machine.write("/sys/fs/cgroup/a/b/cpu.max", "50000 200000\n");
  CHECK(read_cpu_quota(machine.root()) == 0.25);
}

TEST_CASE("version 1: the CPU quota is found in a tree of several controllers") {
  Machine machine;
  machine.write("/proc/self/mountinfo", std::string(v1_memory) + v1_cpu);
  machine.write("/proc/self/cgroup", "4:memory:/\n2:cpu,cpuacct:/job\n");
  machine.write("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "-1\n");
  machine.write("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  CHECK(std::isinf(read_cpu_quota(machine.root())));
  machine.write("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "300000\n");
  CHECK(read_cpu_quota(machine.root()) == 3.0);
}

TEST_CASE("threads follow the mask and the quota, whichever is less, and are never none") {
  CHECK(CpuLimits{8}.threads() == 8);
  CHECK(CpuLimits{8, 3.0}.threads() == 3);
  CHECK(CpuLimits{8, 1.5}.threads() == 2);
  CHECK(CpuLimits{8, 0.1}.threads() == 1);
  CHECK(CpuLimits{2, 16.0}.threads() == 2);
}

TEST_CASE("this machine has some memory and at least one core") {
  const MemoryLimits limits = mica::budget::memory_limits();
  CHECK(limits.installed != MemoryLimits::unlimited);
  CHECK(limits.usable() <= limits.installed);
  CHECK(mica::budget::cpu_limits().cpus >= 1);
  CHECK(mica::budget::cpu_limits().threads() >= 1);
}

#if defined(__linux__)

TEST_CASE("RLIMIT_AS is a limit, less what is mapped already") {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    constexpr rlim_t allowed = rlim_t{1} << 60;
    const rlimit limit{allowed, allowed};
    if (::setrlimit(RLIMIT_AS, &limit) != 0) ::_exit(2);
    const std::uint64_t left = mica::budget::memory_limits().address_space;
    ::_exit(left > 0 && left < allowed ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

#endif

}  // namespace limits_test
