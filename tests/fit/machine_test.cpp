// SPDX-License-Identifier: Apache-2.0

#include "mica_tools/fit/machine.hpp"

#include "io/temporary_folder.hpp"

#include <doctest/doctest.h>

#include <filesystem>

namespace mica::test::machine_test {
namespace {

/// Files as the kernel would show them: 16 GiB installed, 10 GiB available.
class Root {
 public:
  Root() { put("proc/meminfo", "MemTotal:       16777216 kB\nMemAvailable:   10485760 kB\n"); }
  void put(const std::string& name, std::string_view text) {
    std::filesystem::create_directories(std::filesystem::path(folder_.path(name)).parent_path());
    folder_.file(name, text);
  }
  [[nodiscard]] fit::Machine machine() const { return fit::read_machine(folder_.path("")); }

 private:
  TemporaryFolder folder_;
};

}  // namespace

TEST_CASE("a machine is what its files say, and control groups limit it") {
  Root root;
  const fit::Machine plain = root.machine();
  CHECK(plain.ram_bytes == std::uint64_t{16} << 30);
  CHECK(plain.available_bytes == std::uint64_t{10} << 30);
  CHECK(plain.vram_bytes == 0);
  CHECK_FALSE(plain.has_gpu());
  CHECK(plain.cores >= 1);
  CHECK(plain.speed.read_bytes == 50e9);
  CHECK(plain.speed.basis == "assumed");
  CHECK(plain.notes.empty());
  root.put("proc/self/cgroup", "0::/\n");
  root.put("proc/self/mountinfo", "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  root.put("sys/fs/cgroup/memory.max", "4294967296\n");
  root.put("sys/fs/cgroup/memory.current", "1073741824\n");
  CHECK(root.machine().ram_bytes == std::uint64_t{4} << 30);
  CHECK(root.machine().available_bytes == std::uint64_t{3} << 30);
}

TEST_CASE("cards are counted where their driver tells their memory, and named where it does not") {
  Root root;
  root.put("proc/driver/nvidia/version", "NVRM version: ...\n");
  CHECK(root.machine().vram_bytes == 0);
  REQUIRE(root.machine().notes.size() == 1);
  CHECK(root.machine().notes.front().find("--vram") != std::string::npos);
  root.put("sys/class/drm/card0/device/mem_info_vram_total", "17163091968\n");
  root.put("sys/class/drm/card1/device/mem_info_vram_total", "8589934592\n");
  root.put("sys/class/drm/card0-DP-1/device/mem_info_vram_total", "17163091968\n");  // a plug of the first
  const fit::Machine two = root.machine();
  CHECK(two.vram_bytes == 17163091968 + 8589934592);
  CHECK(two.has_gpu());
  CHECK(two.gpu_rate() == fit::assumed_vram_rate);
  CHECK(two.notes.size() == 1);  // the card that tells nothing is still not counted
  fit::Description said;
  said.vram_bytes = 24000;
  CHECK(fit::described(two, said).notes.empty());
}

TEST_CASE("graphics of a processor share the memory, as far as its driver allows, unless a flag denies it") {
  Root root;
  root.put("sys/class/drm/card0/device/mem_info_vram_total", "536870912\n");
  root.put("sys/class/drm/card0/device/mem_info_gtt_total", "8589934592\n");
  root.put("sys/class/drm/card0/device/gpu_metrics",
           std::string_view("\x80\x00\x02\x02", 4));  // a table for processors
  const fit::Machine shared = root.machine();
  CHECK(shared.unified);
  CHECK(shared.vram_bytes == 0);
  CHECK(shared.gpu_bytes() == (std::uint64_t{8} << 30) + 536870912);
  CHECK(shared.gpu_rate() == fit::assumed_ram_rate);
  REQUIRE(shared.notes.size() == 1);
  CHECK(shared.notes.front() == "AMD graphics of the processor, card0: --unified=false leaves it out");
  fit::Description said;
  said.available_bytes = std::uint64_t{2} << 30;
  CHECK(fit::described(shared, said).gpu_bytes() == (std::uint64_t{2} << 30) + 536870912);
  said.unified = false;
  const fit::Machine alone = fit::described(shared, said);
  CHECK_FALSE(alone.has_gpu());
  CHECK(alone.gpu_bytes() == 0);
  CHECK(alone.notes.empty());
  said = {};
  said.vram_bytes = std::uint64_t{24} << 30;  // a card beside it
  CHECK_FALSE(fit::described(shared, said).unified);
  CHECK(fit::described(shared, said).gpu_bytes() == std::uint64_t{24} << 30);
}

TEST_CASE("graphics of a processor do not count beside a card") {
  Root root;
  root.put("sys/class/drm/card0/device/mem_info_vram_total", "536870912\n");
  root.put("sys/class/drm/card0/device/gpu_metrics", std::string_view("\x80\x00\x02\x02", 4));
  root.put("sys/class/drm/card1/device/mem_info_vram_total", "17163091968\n");
  const fit::Machine both = root.machine();
  CHECK_FALSE(both.unified);
  CHECK(both.vram_bytes == 17163091968);
  CHECK(both.notes.empty());
}

TEST_CASE("packages of NVIDIA share their memory, or have a node of memory that is not counted twice") {
  Root spark;
  spark.put("proc/driver/nvidia/gpus/000f:01:00.0/information", "Model: \t\t NVIDIA GB10\n");
  CHECK(spark.machine().unified);
  CHECK(spark.machine().gpu_bytes() == std::uint64_t{10} << 30);
  Root grace;
  grace.put("proc/driver/nvidia/gpus/0009:01:00.0/information", "Model: \t\t NVIDIA GH200 480GB\n");
  grace.put("proc/driver/nvidia/gpus/0009:01:00.0/numa_status",
            "Node:      1\nStatus:    online\nAddress:   420000000000\nSize:      200000000\n");  // 8 GiB
  const fit::Machine two_pools = grace.machine();
  CHECK_FALSE(two_pools.unified);
  CHECK(two_pools.vram_bytes == std::uint64_t{8} << 30);
  CHECK(two_pools.ram_bytes == std::uint64_t{8} << 30);
  CHECK(two_pools.available_bytes == std::uint64_t{8} << 30);
  CHECK(two_pools.notes.empty());
}

TEST_CASE("a described machine has what is said of it, and nothing of this one but its cores") {
  fit::Machine here;
  here.ram_bytes = here.available_bytes = 1000;
  here.vram_bytes = 77;
  here.cores = 3;
  fit::Description said;
  said.ram_bytes = 6000;
  const fit::Machine plain = fit::described(here, said);
  CHECK(plain.available_bytes == 5400);
  CHECK(plain.vram_bytes == 0);
  CHECK(plain.cores == 3);
  CHECK(plain.speed.basis == "assumed");
  said.available_bytes = 5900;
  said.cores = 2;
  said.ram_rate = 60'000'000'000;
  said.vram_bytes = 24000;
  said.vram_rate = 1'008'000'000'000;
  said.disk_rate = 500'000'000;
  const fit::Machine full = fit::described(here, said);
  CHECK(full.available_bytes == 5900);
  CHECK(full.cores == 2);
  CHECK(full.speed.read_bytes == 60e9);
  CHECK(full.speed.disk_bytes == 500e6);
  CHECK(full.speed.basis == "described");
  CHECK(full.gpu_rate() == 1008e9);
  CHECK(full.vram_basis == "described");
}

TEST_CASE("what measured rates are of goes with a described rate, and stays without one") {
  fit::Machine here;
  here.ram_bytes = here.available_bytes = 1000;
  here.speed.read_bytes = 20e9;
  here.speed.dot_macs = 3e9;
  here.speed.basis = "measured";
  CHECK(fit::described(here, {}).speed.dot_macs == 3e9);
  fit::Description said;
  said.ram_rate = 60'000'000'000;
  CHECK(fit::described(here, said).speed.dot_macs == 0);
}

TEST_CASE("processors that share their memory have all that is available, at its rate") {
  fit::Description said;
  said.ram_bytes = 16000;
  said.unified = true;
  said.ram_rate = 100'000'000'000;
  const fit::Machine shared = fit::described({}, said);
  CHECK(shared.has_gpu());
  CHECK(shared.gpu_bytes() == 14400);
  CHECK(shared.gpu_rate() == 100e9);
  said.vram_bytes = 12000;  // what the system lets the graphics processor have
  CHECK(fit::described({}, said).gpu_bytes() == 12000);
}

TEST_CASE("a machine that cannot be is refused with the way out") {
  const auto refused = [](auto&& say) {
    fit::Description said;
    said.ram_bytes = 1000;
    say(said);
    return refusal([&] { return fit::described({}, said).cores; });
  };
  CHECK(mentions(refused([](auto& s) { s.ram_bytes = 0; }), "--ram 16G"));
  CHECK(mentions(refused([](auto& s) { s.cores = 0; }), "0 cores; allowed: 1 to 4096"));
  CHECK(mentions(refused([](auto& s) { s.available_bytes = 1001; }), "1001 bytes available of 1000"));
  CHECK(mentions(refused([](auto& s) { s.mlx = true; }), "--unified"));
}

TEST_CASE("rates are decimal as in data sheets unless they say otherwise") {
  CHECK(fit::parse_rate("60G", "--bandwidth") == 60'000'000'000);
  CHECK(fit::parse_rate("60GB/s", "--bandwidth") == 60'000'000'000);
  CHECK(fit::parse_rate("400 MiB/s", "--bandwidth") == 400ull << 20);
  CHECK(fit::parse_rate("1.5T/s", "--bandwidth") == 1'500'000'000'000);
  CHECK(mentions(refusal([] { return fit::parse_rate("fast", "--bandwidth"); }), "--bandwidth: found"));
  CHECK(mentions(refusal([] { return fit::parse_rate("", "--bandwidth"); }), "--bandwidth: found"));
  CHECK(mentions(refusal([] { return fit::parse_rate("0G", "--disk"); }), "0 bytes a second"));
}

}  // namespace mica::test::machine_test
