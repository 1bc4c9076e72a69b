// SPDX-License-Identifier: Apache-2.0
//
// Sensors of the system: a folder for each, with files for its name and its numbers.
#pragma once

#include "mica/budget/detail/cgroup.hpp"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace mica::pace::detail {

/// The names in a folder for which wanted(name) holds, sorted; none where it cannot be read.
template <class Wanted>
[[nodiscard]] std::vector<std::string> names_in(const std::string& folder, Wanted wanted) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::string name = at->path().filename().string();
    if (wanted(name)) names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// Empty where there is none.
[[nodiscard]] inline std::string first_line(const std::string& path) {
  std::string text = budget::detail::read_text(path).value_or("");
  text.resize(std::min(text.size(), text.find('\n')));
  return text;
}

/// "thermal_zone0 (cpu) and 3 more"
[[nodiscard]] inline std::string with_observers(const std::string& first, std::size_t others) {
  return first + (others == 0 ? "" : " and " + std::to_string(others) + " more");
}

}  // namespace mica::pace::detail
