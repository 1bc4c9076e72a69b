// SPDX-License-Identifier: Apache-2.0
//
// How much the error of each value of a row counts in the search for a block: what an importance matrix says, made safe to
// divide by. Not here: where importance comes from.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

namespace mica::format {

/// Positive, finite weights for the values of a row.
class RowWeights {
 public:
  /// `importance` has one number per column, or none: then all values count alike.
  explicit RowWeights(std::span<const float> importance) noexcept : importance_(importance) {
    double sum = 0;
    for (const float x : importance) sum += sane(x);
    const double mean = importance.empty() ? 0 : sum / static_cast<double>(importance.size());
    if (mean > 0) {
      inverse_ = 1 / mean;
    } else {
      importance_ = {};
    }
  }

  /// The weights of columns first to first + n.
  void fill(std::size_t first, std::size_t n, float* weights) const noexcept {
    if (importance_.empty()) {
      std::fill_n(weights, n, 1.0f);
      return;
    }
    for (std::size_t i = 0; i < n; ++i) {
      const double relative = sane(importance_[first + i]) * inverse_;
      weights[i] = static_cast<float>(std::clamp(relative, 1e-4, 1e4));
    }
  }

 private:
  /// What is negative or no number counts as nothing.
  static double sane(float x) noexcept { return x > 0 && std::isfinite(x) ? static_cast<double>(x) : 0; }

  std::span<const float> importance_;
  double inverse_ = 0;
};

}  // namespace mica::format
