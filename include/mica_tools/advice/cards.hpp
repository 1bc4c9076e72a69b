// SPDX-License-Identifier: Apache-2.0
//
// Graphics processors and their memory, as far as files of the kernel and of drivers tell it. No library of a
// vendor is called. What no file tells stays empty and is not guessed.
//
//   AMD      sys/class/drm/cardN/device: mem_info_vram_total, mem_info_gtt_total, gpu_metrics
//   NVIDIA   proc/driver/nvidia/gpus/ADDRESS: information (the model), numa_status (memory that is a NUMA
//            node; the driver adds its size while a program uses the card)
//   Tegra    proc/device-tree/compatible
//   Intel    sys/class/drm/cardN/device/vendor; no file has the size of its memory
#pragma once

#include "mica/base/error.hpp"
#include "mica/io/detail/path.hpp"
#include "mica_tools/advice/detail/small_files.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mica::advice {

/// One graphics processor.
struct Card {
  std::string name;                                // "AMD card0", or the model that the driver names
  bool unified = false;                            // it is a part of the processor and uses main memory
  bool is_node = false;                            // own_bytes are a NUMA node, which MemTotal counts too
  bool accepts = true;                             // engines for graphics cards commonly use it; false: Intel
  std::optional<std::uint64_t> own_bytes = {};     // memory that is not main memory; empty: no file tells it
  std::optional<std::uint64_t> shared_bytes = {};  // main memory that it may use at most
  std::optional<std::uint64_t> window_bytes = {};  // the largest region on its bus
};

namespace detail {

/// The largest of the six regions (BARs) of a PCI device: lines "begin end flags" of its file `resource`.
[[nodiscard]] inline std::optional<std::uint64_t> largest_region(const std::string& path) {
  const auto text = budget::detail::read_text(path);
  if (!text) return std::nullopt;
  std::string_view rest = *text;
  std::uint64_t max = 0;
  for (int region = 0; region < 6 && !rest.empty(); ++region) {
    std::string_view line = budget::detail::take_until(rest, '\n');
    const auto begin = hex_number(budget::detail::take_until(line, ' '));
    const auto end = hex_number(budget::detail::take_until(line, ' '));
    if (begin && end && *end > *begin) max = std::max(max, *end - *begin + 1);
  }
  return max == 0 ? std::nullopt : std::optional(max);
}

/// Whether amdgpu's table of measurements is one for a processor with graphics: its third byte is the
/// revision of the format, 1 for cards, 2 and 3 for processors (kgd_pp_interface.h of the kernel). Older
/// processors have no table and count as cards.
[[nodiscard]] inline bool is_in_processor(const std::string& device) {
  const auto table = budget::detail::read_text(device + "/gpu_metrics");
  return table && table->size() >= 4 && ((*table)[2] == 2 || (*table)[2] == 3);
}

[[nodiscard]] inline Card amd_card(const std::string& name, const std::string& device) {
  Card card;
  card.unified = is_in_processor(device);
  card.name = join(card.unified ? "AMD graphics of the processor, " : "AMD ", name);
  card.own_bytes = budget::detail::read_number(device + "/mem_info_vram_total");
  if (card.unified) card.shared_bytes = budget::detail::read_number(device + "/mem_info_gtt_total");
  return card;
}

/// Models that have no memory of their own: DGX Spark and the modules for robots and cars.
[[nodiscard]] inline bool shares_memory(std::string_view model) noexcept {
  constexpr std::array words = {"GB10", "Thor", "Orin"};
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return model.find(word) != model.npos; });
}

/// Bytes of a NUMA node: the line "Node 1 MemTotal: 100663296 kB".
[[nodiscard]] inline std::optional<std::uint64_t> node_bytes(const std::string& root,
                                                             const std::string& number) {
  const auto text =
      budget::detail::read_text(join(root, "/sys/devices/system/node/node", number, "/meminfo"));
  const auto kib = budget::detail::number_of(text.value_or(""), join("Node ", number, " MemTotal:"));
  return kib && *kib < std::uint64_t{1} << 53 ? std::optional(*kib * 1024) : std::nullopt;
}

/// Grace-Hopper and Grace-Blackwell: the memory of the card is a NUMA node where numa_status says "online".
[[nodiscard]] inline Card nvidia_card(const std::string& root, const std::string& address) {
  const std::string folder = join(root, "/proc/driver/nvidia/gpus/", address);
  const std::string model =
      value_of(budget::detail::read_text(folder + "/information").value_or(""), "Model:");
  Card card;
  card.name = model.empty() ? join("NVIDIA card ", address) : model;
  card.unified = shares_memory(model);
  card.window_bytes = largest_region(join(root, "/sys/bus/pci/devices/", address, "/resource"));
  const std::string node = budget::detail::read_text(folder + "/numa_status").value_or("");
  if (value_of(node, "Status:") == "online") {
    card.own_bytes = hex_number(value_of(node, "Size:"));
    if (!card.own_bytes) card.own_bytes = node_bytes(root, value_of(node, "Node:"));
    card.is_node = card.own_bytes.has_value();
  }
  return card;
}

}  // namespace detail

/// The graphics processors that the files below `root` name; "" is this machine. Displays without a processor
/// for engines (virtual ones, those of servers) are left out. Cost: reads of a driver's files may wake a card
/// that sleeps, which takes up to a second.
[[nodiscard]] inline std::vector<Card> read_cards(const std::string& root) {
  std::vector<Card> cards;
  for (const std::string& address : io::detail::names_in(root + "/proc/driver/nvidia/gpus"))
    cards.push_back(detail::nvidia_card(root, address));
  const bool has_driver = budget::detail::read_text(root + "/proc/driver/nvidia/version").has_value();
  if (cards.empty() && has_driver) cards.push_back({.name = "NVIDIA card"});
  const bool has_nvidia = !cards.empty();
  for (const std::string& name : io::detail::names_in(root + "/sys/class/drm")) {
    if (!name.starts_with("card") || name.find('-') != name.npos) continue;  // card0-DP-1: a connector
    const std::string device = join(root, "/sys/class/drm/", name, "/device");
    const auto vendor = detail::hex_number(detail::first_line(device + "/vendor")).value_or(0);
    const bool has_sizes = budget::detail::read_number(device + "/mem_info_vram_total").has_value();
    if (vendor == 0x1002 || has_sizes) cards.push_back(detail::amd_card(name, device));
    if (vendor == 0x10de && !has_nvidia)
      cards.push_back(
          {.name = "NVIDIA " + name, .window_bytes = detail::largest_region(device + "/resource")});
    if (vendor == 0x8086) cards.push_back({.name = "Intel " + name, .accepts = false});
  }
  const std::string tree = budget::detail::read_text(root + "/proc/device-tree/compatible").value_or("");
  if (!has_nvidia && tree.find("nvidia,tegra") != tree.npos)
    cards.push_back({.name = "NVIDIA Tegra", .unified = true});
  return cards;
}

}  // namespace mica::advice
