// SPDX-License-Identifier: Apache-2.0
//
// The power of the processor, from energy counters that Linux has below /sys/class/powercap: intel-rapl:0 is
// a package (AMD's too), and intel-rapl:0:0 a part of it, which is left out. Many systems let only root read
// them, because power reveals what other processes compute.
#pragma once

#include "mica/budget/detail/cgroup.hpp"
#include "mica/budget/detail/polled_file.hpp"
#include "mica_tools/pace/detail/sensor_files.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mica::pace {

/// The power of all packages together. Files stay open. One thread.
class PowerMeter {
 public:
  using Time = std::chrono::steady_clock::time_point;

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
    return detail::with_observers(packages_.front().name, packages_.size() - 1);
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
