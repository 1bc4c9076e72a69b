// SPDX-License-Identifier: Apache-2.0
//
// The distribution of numbers: maximum, median, percentiles.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace mica {

/// Numbers in order, accessed by rank.
class Sorted {
 public:
  explicit Sorted(std::vector<float> values) : values_(std::move(values)) {
    std::sort(values_.begin(), values_.end());
  }
  /// The value below which that part (0 to 1) of the numbers lie, between two of them in proportion; 0 for
  /// none.
  [[nodiscard]] double at(double part) const noexcept {
    if (values_.empty()) return 0.0;
    const double place = std::clamp(part, 0.0, 1.0) * static_cast<double>(values_.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const std::size_t above = std::min(below + 1, values_.size() - 1);
    const double share = place - static_cast<double>(below);
    return (1 - share) * static_cast<double>(values_[below]) + share * static_cast<double>(values_[above]);
  }

 private:
  std::vector<float> values_;
};

}  // namespace mica
