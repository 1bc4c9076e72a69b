// SPDX-License-Identifier: Apache-2.0
//
// The mean of numbers that are added one by one, and its standard error. Sums in double; only sums are
// stored.
#pragma once

#include <cmath>
#include <cstddef>

namespace mica {

/// A number and its standard error.
struct Estimate {
  double value = 0;
  double error = 0;

  /// e to the power of it; the error by the slope there.
  [[nodiscard]] Estimate exp() const noexcept {
    const double e = std::exp(value);
    return {e, e * error};
  }
};

/// Count, sum and sum of squares of numbers that are taken to be independent.
class RunningMean {
 public:
  void add(double x) noexcept {
    ++count_;
    sum_ += x;
    squares_ += x * x;
  }

  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  [[nodiscard]] double sum() const noexcept { return sum_; }
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
  [[nodiscard]] Estimate estimate() const noexcept { return {mean(), error()}; }

 private:
  std::size_t count_ = 0;
  double sum_ = 0;
  double squares_ = 0;
};

}  // namespace mica
