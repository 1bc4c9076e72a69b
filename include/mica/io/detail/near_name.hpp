// SPDX-License-Identifier: Apache-2.0
//
// The known name that is nearest to a wrong one: for a file that is not there, and for other lists of names.
#pragma once

#include "mica/io/detail/path.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mica::io {

/// The smallest number of insertions, deletions, changes and swaps of adjacent characters that turn one name
/// into the other; case does not count. No character is edited twice (optimal string alignment). Cost:
/// a.size() * b.size() steps.
[[nodiscard]] inline std::size_t edit_distance(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  const auto same = [&](std::size_t i, std::size_t j) { return lower(a[i]) == lower(b[j]); };
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);  // of i - 2, i - 1, i
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before.swap(last);
    last.swap(row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j - 1] + (same(i - 1, j - 1) ? 0 : 1), last[j] + 1, row[j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && same(i - 1, j - 2) && same(i - 2, j - 1);
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

/// Keeps the nearest of the names that are offered.
class NearName {
 public:
  explicit NearName(std::string wanted)
      : wanted_(std::move(wanted)), limit_(std::min<std::size_t>(1 + wanted_.size() / 5, 3)) {}

  /// `shown` is what would be suggested, `compared` the part of it that is compared with the wanted name.
  void offer(std::string_view shown, std::string_view compared) {
    if (wanted_.size() > 255 || compared.size() > 255) return;  // no file system has longer names
    std::size_t distance = edit_distance(wanted_, compared);
    if (begins(compared)) distance = std::min(distance, limit_);
    if (distance > limit_ || (best_ && distance >= distance_)) return;
    best_ = std::string(shown);
    distance_ = distance;
  }
  void offer(std::string_view name) { offer(name, name); }

  /// Empty when none was near: within one edit for names below five characters, two below ten, else three, or
  /// beginning with the wanted name.
  [[nodiscard]] const std::optional<std::string>& best() const noexcept { return best_; }

 private:
  /// Whether a name begins with the wanted one, which has two characters or more after dashes.
  [[nodiscard]] bool begins(std::string_view name) const noexcept {
    const std::size_t first = wanted_.find_first_not_of('-');
    return first != std::string::npos && wanted_.size() >= first + 2 && name.starts_with(wanted_);
  }

  std::string wanted_;
  std::size_t limit_;
  std::size_t distance_ = 0;
  std::optional<std::string> best_;
};

/// The file beside `path` whose name, with or without its ending, is nearest; of the first 4,096 entries.
[[nodiscard]] inline std::optional<std::string> near_file(std::string_view path) {
  NearName near{std::string(detail::name_part(path))};
  detail::for_each_beside(path, [&, seen = 0](int, std::string_view name) mutable {
    const std::size_t dot = name.rfind('.');
    near.offer(name);
    if (dot != 0) near.offer(name, name.substr(0, dot));
    return ++seen < 4096;
  });
  return near.best();
}

}  // namespace mica::io
