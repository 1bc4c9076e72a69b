// SPDX-License-Identifier: Apache-2.0

#include "mica_tools/advice/cards.hpp"

#include "advice/machine_tree.hpp"

#include <doctest/doctest.h>

namespace mica::test::cards_test {
namespace {

using namespace std::string_view_literals;

constexpr std::uint64_t gib = std::uint64_t{1} << 30;
constexpr std::string_view of_card = "\x78\x00\x01\x03"sv, of_processor = "\x80\x00\x02\x02"sv,
                           of_new_processor = "\x08\x01\x03\x00"sv;  // heads of amdgpu's tables

void put_nvidia(const MachineTree& tree, const std::string& address, const std::string& model) {
  tree.put("proc/driver/nvidia/version", "NVRM version: ...\n");
  tree.put(
      "proc/driver/nvidia/gpus/" + address + "/information",
      "Model: \t\t " + model + "\nIRQ:   \t\t 10\nBus Type: \t PCIe\nBus Location: \t " + address + "\n");
}

}  // namespace

TEST_CASE("a card of AMD tells its memory") {
  const MachineTree tree;
  tree.put("sys/class/drm/card0/device/vendor", "0x1002\n");
  tree.put("sys/class/drm/card0/device/mem_info_vram_total", "17163091968\n");
  tree.put("sys/class/drm/card0/device/mem_info_gtt_total", "33554432000\n");
  tree.put("sys/class/drm/card0/device/gpu_metrics", of_card);
  tree.put("sys/class/drm/card0-DP-1/device/vendor", "0x1002\n");  // a connector
  const auto cards = advice::read_cards(tree.root());
  REQUIRE(cards.size() == 1);
  CHECK_FALSE(cards[0].unified);
  CHECK(cards[0].own_bytes == 17163091968u);
  CHECK_FALSE(cards[0].shared_bytes);
  CHECK(tree.line("graphics") == "AMD card0, 16.0 GiB: fine");
}

TEST_CASE("graphics of a processor of AMD use main memory, as far as the driver allows") {
  const MachineTree tree;
  tree.put("sys/class/drm/card1/device/vendor", "0x1002\n");
  tree.put("sys/class/drm/card1/device/mem_info_vram_total", "536870912\n");
  tree.put("sys/class/drm/card1/device/mem_info_gtt_total", "8589934592\n");
  for (const std::string_view table : {of_processor, of_new_processor}) {
    tree.put("sys/class/drm/card1/device/gpu_metrics", table);
    const auto cards = advice::read_cards(tree.root());
    REQUIRE(cards.size() == 1);
    CHECK(cards[0].unified);
    CHECK(cards[0].own_bytes == gib / 2);
    CHECK(cards[0].shared_bytes == 8 * gib);
    CHECK(tree.line("graphics") ==
          "AMD graphics of the processor, card1, 512.0 MiB set aside, 8.0 GiB of main memory at most: fine");
  }
}

TEST_CASE("no file tells the memory of a card of NVIDIA, and what its bus shows is not taken for it") {
  const MachineTree tree;
  put_nvidia(tree, "0000:01:00.0", "NVIDIA GeForce RTX 4090");
  tree.put("sys/class/drm/card0/device/vendor", "0x10de\n");  // the same card
  const std::string rest =
      ": no file tells the size of its memory, so mica fit does not count it (a run uses the processor); "
      "give it: mica fit --vram SIZE";
  CHECK(tree.line("graphics") == "NVIDIA GeForce RTX 4090" + rest);
  tree.put("sys/bus/pci/devices/0000:01:00.0/resource",
           "0x0000000080000000 0x0000000080ffffff 0x0000000000040200\n"
           "0x0000006000000000 0x00000067ffffffff 0x000000000014220c\n"
           "0x0000000000000000 0x0000000000000000 0x0000000000000000\n");
  const auto cards = advice::read_cards(tree.root());
  REQUIRE(cards.size() == 1);
  CHECK(cards[0].window_bytes == 32 * gib);
  CHECK_FALSE(cards[0].own_bytes);
  CHECK(tree.line("graphics") ==
        "NVIDIA GeForce RTX 4090, 32.0 GiB visible on the bus, which is not its memory" + rest);
}

TEST_CASE("a card of NVIDIA is found without its driver, and with a driver that lists none") {
  const MachineTree other;
  other.put("sys/class/drm/card0/device/vendor", "0x10de\n");
  CHECK(other.line("graphics").starts_with("NVIDIA card0: no file tells"));
  const MachineTree old;
  old.put("proc/driver/nvidia/version", "NVRM version: ...\n");
  CHECK(old.line("graphics").starts_with("NVIDIA card: no file tells"));
}

TEST_CASE(
    "Grace with Hopper: the memory of the card is a node of the machine, and the driver tells its size") {
  const MachineTree tree;
  put_nvidia(tree, "0009:01:00.0", "NVIDIA GH200 480GB");
  CHECK(advice::read_cards(tree.root()).front().own_bytes == std::nullopt);
  tree.put("proc/driver/nvidia/gpus/0009:01:00.0/numa_status", "Node:      1\nStatus:    online\n");
  tree.put("sys/devices/system/node/node1/meminfo",
           "Node 1 MemTotal:       98304 kB\nNode 1 MemFree: 0 kB\n");
  CHECK(advice::read_cards(tree.root()).front().own_bytes == gib / 1024 * 96);
  tree.put("proc/driver/nvidia/gpus/0009:01:00.0/numa_status",
           "Node:      1\nStatus:    online\nAddress:   420000000000\nSize:      1800000000\n");
  const auto cards = advice::read_cards(tree.root());
  REQUIRE(cards.size() == 1);
  CHECK(cards[0].own_bytes == 96 * gib);
  CHECK(cards[0].is_node);
  CHECK_FALSE(cards[0].unified);
  CHECK(tree.line("graphics") == "NVIDIA GH200 480GB, 96.0 GiB that count as memory too: fine");
}

TEST_CASE("Grace with Blackwell in one package, and Tegra, have no memory of their own") {
  const MachineTree spark;
  put_nvidia(spark, "000f:01:00.0", "NVIDIA GB10");
  CHECK(advice::read_cards(spark.root()).front().unified);
  CHECK(spark.line("graphics") == "NVIDIA GB10, shares main memory: fine");
  const MachineTree jetson;
  jetson.put("proc/device-tree/compatible", "nvidia,p3737-0000+p3701-0005\0nvidia,tegra234\0"sv);
  CHECK(jetson.line("graphics") == "NVIDIA Tegra, shares main memory: fine");
}

TEST_CASE("graphics of Intel are named, and displays of servers and virtual machines are not") {
  const MachineTree tree;
  tree.put("sys/class/drm/card0/device/vendor", "0x1a03\n");
  tree.put("sys/class/drm/card1/device/vendor", "0x1af4\n");
  CHECK(advice::read_cards(tree.root()).empty());
  tree.put("sys/class/drm/card2/device/vendor", "0x8086\n");
  CHECK(tree.line("graphics") == "Intel card2: fine");
}

}  // namespace mica::test::cards_test
