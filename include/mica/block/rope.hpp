// SPDX-License-Identifier: Apache-2.0
//
// The angles of rotary embedding. Frequencies and angles are computed in double, so that large positions lose nothing;
// tables hold floats for the positions of one step.
#pragma once

#include "mica/base/matrix_view.hpp"
#include "mica/block/config.hpp"

#include <cmath>
#include <cstddef>
#include <vector>

namespace mica::block {

/// Frequencies of one model.
class RopeFrequencies {
 public:
  explicit RopeFrequencies(const RopeConfig& config) {
    for (std::size_t i = 0; i < config.dims / 2; ++i) {
      const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(config.dims);
      const double factor = config.factors.empty() ? 1.0 : static_cast<double>(config.factors[i]);
      frequencies_.push_back(std::pow(config.base, exponent) / (factor * config.scale));
    }
  }

  /// Pairs of a head that rotate.
  [[nodiscard]] std::size_t pairs() const noexcept { return frequencies_.size(); }

  /// Row r of the tables becomes the angles of position pos + r.
  void fill(std::size_t pos, MatrixView<float> cos, MatrixView<float> sin) const noexcept {  // (n, pairs)
    for (std::size_t r = 0; r < cos.rows(); ++r) {
      for (std::size_t i = 0; i < pairs(); ++i) {
        const double angle = static_cast<double>(pos + r) * frequencies_[i];
        cos[r][i] = static_cast<float>(std::cos(angle));
        sin[r][i] = static_cast<float>(std::sin(angle));
      }
    }
  }

 private:
  std::vector<double> frequencies_;
};

}  // namespace mica::block
