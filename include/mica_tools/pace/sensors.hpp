// SPDX-License-Identifier: Apache-2.0
//
// What Linux measures of the processor: its temperature, from a folder for each thermal zone with a type, a
// temperature in thousandths of a degree, and trip points at which the system slows down or stops; its power,
// from a folder with a counter of energy for each package.
#pragma once

#include "mica/budget/detail/cgroup.hpp"
#include "mica/budget/detail/polled_file.hpp"
#include "mica/io/detail/path.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::pace {

namespace detail {

/// The names in a folder for which wanted(name) holds, sorted; none where it cannot be read.
template <class Wanted>
[[nodiscard]] std::vector<std::string> names_in(const std::string& folder, Wanted wanted) {
  std::vector<std::string> names = io::detail::names_in(folder);
  std::erase_if(names, [&](const std::string& name) { return !wanted(name); });
  return names;
}

/// Empty where there is none.
[[nodiscard]] inline std::string first_line(const std::string& path) {
  std::string text = budget::detail::read_text(path).value_or("");
  text.resize(std::min(text.size(), text.find('\n')));
  return text;
}

/// "thermal_zone0 (cpu) and 3 more"
[[nodiscard]] inline std::string with_others(const std::string& first, std::size_t others) {
  return first + (others == 0 ? "" : " and " + std::to_string(others) + " more");
}

}  // namespace detail

/// The hottest of some zones of /sys/class/thermal: those of the processor where their types name it, else
/// all. Files stay open. One thread.
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
    return detail::with_others(zones_.front().name, zones_.size() - 1);
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

/// The power of all packages together, from energy counters below /sys/class/powercap: intel-rapl:0 is a
/// package (AMD's too), and intel-rapl:0:0 a part of it, which is left out. Many systems let only root read
/// them, because power reveals what other processes compute. Files stay open. One thread.
class PowerMeter {
 public:
  using Time = std::chrono::steady_clock::time_point;  // of readings, in their order

  /// root: stands before /sys, for tests.
  explicit PowerMeter(const std::string& root = "") {
    const std::string all = root + "/sys/class/powercap";
    const auto package = [](const std::string& name) {
      return name.starts_with("intel-rapl:") && std::count(name.begin(), name.end(), ':') == 1;
    };
    std::array<char, 64> text;
    for (const std::string& name : detail::names_in(all, package)) {
      const std::string folder = all + "/" + name;
      const std::string kind = detail::first_line(folder + "/name");
      budget::detail::PolledFile energy(folder + "/energy_uj");
      if (!budget::detail::number_at(energy.read(text))) continue;
      const auto wraps = budget::detail::read_number(folder + "/max_energy_range_uj").value_or(0);
      packages_.push_back({name + " (" + kind + ")", std::move(energy), wraps});
    }
  }

  /// Whether there is a counter.
  [[nodiscard]] explicit operator bool() const noexcept { return !packages_.empty(); }
  /// Watts since the last call; empty at the first one. Counters wrap, once between two calls at most.
  [[nodiscard]] std::optional<double> watts(Time now) noexcept {
    std::array<char, 64> text;
    double joules = 0;
    for (Package& package : packages_) {
      const std::uint64_t energy =
          budget::detail::number_at(package.energy.read(text)).value_or(package.last);
      const std::uint64_t last = std::exchange(package.last, energy);
      const std::uint64_t more =
          energy >= last ? energy - last : package.wraps_at - std::min(package.wraps_at, last) + energy;
      joules += static_cast<double>(more) / 1e6;
    }
    const std::optional<Time> before = std::exchange(last_, now);
    if (!before || now <= *before) return std::nullopt;
    return joules / std::chrono::duration<double>(now - *before).count();
  }
  /// "intel-rapl:0 (package-0)", the one it begins with, and how many others.
  [[nodiscard]] std::string name() const {
    if (packages_.empty()) return "no package";
    return detail::with_others(packages_.front().name, packages_.size() - 1);
  }

 private:
  struct Package {
    std::string name;
    budget::detail::PolledFile energy;
    std::uint64_t wraps_at;  // microjoules
    std::uint64_t last = 0;
  };

  std::vector<Package> packages_;
  std::optional<Time> last_;
};

}  // namespace mica::pace
