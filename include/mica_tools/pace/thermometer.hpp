// SPDX-License-Identifier: Apache-2.0
//
// The temperature of the processor, from /sys/class/thermal: a folder for each zone, with its type, its
// temperature in thousandths of a degree, and trip points at which the system slows down or stops.
#pragma once

#include "mica/budget/detail/cgroup.hpp"
#include "mica/budget/detail/polled_file.hpp"
#include "mica_tools/pace/detail/sensor_files.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::pace {

/// The hottest of some zones: those of the processor where their types name it, else all. Files stay open.
/// One thread.
class Thermometer {
 public:
  /// root: stands before /sys, for tests.
  explicit Thermometer(const std::string& root = "") {
    const std::string all = root + "/sys/class/thermal";
    const auto is_zone = [](const std::string& name) { return name.starts_with("thermal_zone"); };
    for (const std::string& name : detail::names_in(all, is_zone)) add(all + "/" + name, name);
    const bool knows = std::any_of(zones_.begin(), zones_.end(), [](const Zone& z) { return z.processor; });
    if (knows) std::erase_if(zones_, [](const Zone& zone) { return !zone.processor; });
    for (const Zone& zone : zones_) {
      const std::string folder = all + "/" + zone.name.substr(0, zone.name.find(' '));
      for (int i = 0; i < 16; ++i) {
        const std::string trip = folder + "/trip_point_" + std::to_string(i);
        const std::string kind = budget::detail::read_text(trip + "_type").value_or("");
        if (!kind.starts_with("passive") && !kind.starts_with("hot") && !kind.starts_with("critical"))
          continue;
        const auto at = degrees(budget::detail::read_text(trip + "_temp").value_or(""));
        if (at && *at > 0) trip_ = std::min(trip_.value_or(*at), *at);
      }
    }
  }

  /// Whether there is a zone.
  [[nodiscard]] explicit operator bool() const noexcept { return !zones_.empty(); }
  /// Degrees Celsius; empty when no zone can be read now. Cost: a read for each zone.
  [[nodiscard]] std::optional<double> celsius() const noexcept {
    std::optional<double> hottest;
    std::array<char, 64> text;
    for (const Zone& zone : zones_) {
      const auto now = degrees(zone.temperature.read(text));
      if (now) hottest = std::max(hottest.value_or(*now), *now);
    }
    return hottest;
  }
  /// "thermal_zone0 (x86_pkg_temp)", the one it begins with, and how many others.
  [[nodiscard]] std::string name() const {
    if (zones_.empty()) return "no thermal zone";
    return detail::with_observers(zones_.front().name, zones_.size() - 1);
  }
  /// The lowest trip point of these zones.
  [[nodiscard]] std::optional<double> trip() const noexcept { return trip_; }

 private:
  struct Zone {
    std::string name;
    budget::detail::PolledFile temperature;
    bool processor;
  };

  /// A zone that can be read.
  void add(const std::string& folder, const std::string& name) {
    const std::string type = detail::first_line(folder + "/type");
    budget::detail::PolledFile file(folder + "/temp");
    std::array<char, 64> text;
    if (!degrees(file.read(text))) return;
    const auto says = [&](std::string_view word) { return type.find(word) != std::string::npos; };
    const bool processor =
        says("cpu") || says("CPU") || says("x86_pkg_temp") || says("soc") || says("SoC") || says("TCPU");
    zones_.push_back({name + " (" + type + ")", std::move(file), processor});
  }
  [[nodiscard]] static std::optional<double> degrees(std::string_view text) noexcept {
    int thousandths = 0;  // below zero as well
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), thousandths);
    if (error != std::errc{}) return std::nullopt;
    return thousandths / 1000.0;
  }

  std::vector<Zone> zones_;  // by name
  std::optional<double> trip_;
};

}  // namespace mica::pace
