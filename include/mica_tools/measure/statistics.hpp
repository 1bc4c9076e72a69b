// SPDX-License-Identifier: Apache-2.0
//
// Numbers of a measurement: mean and standard error, maximum, median, percentiles.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

namespace mica {

/// Numbers in order, accessed by rank.
class Sorted {
 public:
  /// Sorts the numbers. Requires that none is NaN.
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

/// A number and its standard error.
struct Estimate {
  double value = 0;  // the number
  double error = 0;  // not below 0; 0 also where it is not known

  /// e to the power of it; the error by the slope there.
  [[nodiscard]] Estimate exp() const noexcept {
    const double e = std::exp(value);
    return {e, e * error};
  }
};

/// Count, sum and sum of squares of numbers that are taken to be independent.
class RunningMean {
 public:
  /// Counts one more number.
  void add(double x) noexcept {
    ++count_;
    sum_ += x;
    squares_ += x * x;
  }

  /// Numbers that were added.
  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  /// 0 when nothing was added.
  [[nodiscard]] double mean() const noexcept {
    return count_ == 0 ? 0.0 : sum_ / static_cast<double>(count_);
  }
  /// The standard error of the mean; 0 below two numbers, and when rounding leaves no variance.
  [[nodiscard]] double error() const noexcept {
    if (count_ < 2) return 0.0;
    const double n = static_cast<double>(count_);
    const double variance = squares_ / n - mean() * mean();
    return variance > 0 ? std::sqrt(variance / (n - 1)) : 0.0;
  }
  /// The mean with its standard error.
  [[nodiscard]] Estimate estimate() const noexcept { return {mean(), error()}; }

 private:
  std::size_t count_ = 0;
  double sum_ = 0;
  double squares_ = 0;
};

}  // namespace mica
