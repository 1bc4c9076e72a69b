// SPDX-License-Identifier: Apache-2.0
//
// Readings of files that a test writes, as kernels with control groups of either version, or without, have them.

#include "mica/budget/pressure.hpp"

#include "io/temporary_folder.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

namespace mica::test::pressure_test {
namespace {

using namespace std::chrono_literals;
using budget::Pressure;
using budget::PressureReader;

constexpr std::uint64_t mib = std::uint64_t{1} << 20;
const PressureReader::Clock::time_point start{};

/// A root folder with a /proc and a /sys of our own.
class Machine {
 public:
  void write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = folder_.path("root") + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  void meminfo(std::uint64_t total_mib, std::uint64_t available_mib) const {
    write("/proc/meminfo", "MemTotal: " + std::to_string(total_mib * 1024) +
                               " kB\nMemFree: 5 kB\nMemAvailable:   " + std::to_string(available_mib * 1024) +
                               " kB\n");
  }
  void stall(const std::string& path, int some_us) const {
    write(path, "some avg10=0.00 avg60=0.00 avg300=0.00 total=" + std::to_string(some_us) +
                    "\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=77\n");
  }
  std::string root() const { return folder_.path("root"); }

 private:
  TemporaryFolder folder_;
};

const std::string v2 = "/sys/fs/cgroup/app", v1 = "/sys/fs/cgroup/memory/app";

void mount_v2(const Machine& machine) {
  machine.write("/proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  machine.write("/proc/self/cgroup", "0::/app\n");
  machine.write(v2 + "/memory.max", "max\n");
  machine.write(v2 + "/memory.high", std::to_string(1000 * mib) + "\n");
  machine.write(v2 + "/memory.current", std::to_string(900 * mib) + "\n");
  machine.write(v2 + "/memory.stat", "anon 5\ninactive_file " + std::to_string(50 * mib) + "\nactive_file " +
                                         std::to_string(10 * mib) + "\n");
  machine.write(v2 + "/memory.events", "low 0\nhigh 5\nmax 3\noom 0\noom_kill 2\n");
}

}  // namespace

TEST_CASE("nothing to read is nothing") {
  const Machine machine;
  PressureReader reader(machine.root());
  CHECK_FALSE(reader.poll(start));
}

TEST_CASE("the machine: what is available, and how long somebody waited") {
  const Machine machine;
  machine.meminfo(4000, 300);
  machine.stall("/proc/pressure/memory", 5'000'000);
  PressureReader reader(machine.root());
  const auto first = reader.poll(start);
  REQUIRE(first);
  CHECK(first->authority == "the machine");
  CHECK(first->limit == 4000 * mib);
  CHECK(first->left == 300 * mib);
  CHECK(first->stalled == 0);  // before there was nothing to compare with
  machine.stall("/proc/pressure/memory", 5'500'000);
  machine.meminfo(4000, 200);
  CHECK_FALSE(reader.poll(start + 99ms));
  const auto second = reader.poll(start + 2s);
  REQUIRE(second);
  CHECK(second->left == 200 * mib);
  CHECK(second->stalled == doctest::Approx(0.25));
}

TEST_CASE(
    "version 2: page cache is left, memory.high is a limit, and kills are counted from the first look on") {
  const Machine machine;
  machine.meminfo(4000, 3000);
  mount_v2(machine);
  machine.stall(v2 + "/memory.pressure", 100);
  PressureReader reader(machine.root());
  const auto first = reader.poll(start);
  REQUIRE(first);
  CHECK(first->authority == "the control group");
  CHECK(first->limit == 1000 * mib);
  CHECK(first->left == 160 * mib);
  CHECK(first->killed == 0);
  machine.write(v2 + "/memory.events", "low 0\nhigh 5\nmax 3\noom 1\noom_kill 4\n");
  machine.stall(v2 + "/memory.pressure", 500'100);
  const auto second = reader.poll(start + 1s);
  REQUIRE(second);
  CHECK(second->killed == 2);
  CHECK(second->stalled == doctest::Approx(0.5));
  CHECK(reader.poll(start + 2s)->killed == 0);
}

TEST_CASE("version 1: limits, use and kills of a group, and of the ones above it") {
  const Machine machine;
  machine.meminfo(4000, 3900);
  machine.write("/proc/self/mountinfo", "34 25 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
  machine.write("/proc/self/cgroup", "4:memory:/app\n0::/\n");
  const std::string above = "/sys/fs/cgroup/memory";
  machine.write(v1 + "/memory.limit_in_bytes", "9223372036854771712\n");
  machine.write(v1 + "/memory.usage_in_bytes", std::to_string(400 * mib) + "\n");
  machine.write(above + "/memory.limit_in_bytes", std::to_string(800 * mib) + "\n");
  machine.write(above + "/memory.usage_in_bytes", std::to_string(790 * mib) + "\n");
  machine.write(above + "/memory.stat",
                "total_inactive_file " + std::to_string(90 * mib) + "\ntotal_active_file 0\n");
  machine.write(v1 + "/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n");
  PressureReader reader(machine.root());
  const auto first = reader.poll(start);
  REQUIRE(first);
  CHECK(first->limit == 800 * mib);
  CHECK(first->left == 100 * mib);
  machine.write(v1 + "/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n");
  machine.write(v1 + "/memory.limit_in_bytes", std::to_string(410 * mib) + "\n");
  const auto second = reader.poll(start + 1s);
  CHECK(second->left == 10 * mib);
  CHECK(second->killed == 1);
}

TEST_CASE("files that are cut, empty or full of other words are no pressure") {
  const Machine machine;
  machine.meminfo(4000, 300);
  mount_v2(machine);
  for (const std::string text :
       {"", "some", "some total=", "max", "-1", "oom_kill", "some avg10=x total=99999999999999999999999"}) {
    for (const char* name :
         {"/memory.high", "/memory.current", "/memory.stat", "/memory.events", "/memory.pressure"}) {
      machine.write(v2 + name, text);
    }
    machine.write("/proc/pressure/memory", text);
    PressureReader reader(machine.root());
    const auto look = reader.poll(start);
    REQUIRE(look);
    CHECK(look->left <= look->limit);
    CHECK(reader.poll(start + 1s)->stalled == 0);
  }
}

}  // namespace mica::test::pressure_test
