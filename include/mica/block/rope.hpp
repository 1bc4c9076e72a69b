// SPDX-License-Identifier: Apache-2.0
//
// Rotary embedding: its parameters, of which a model has one set or two, and its angles. Frequencies and
// angles are computed in double, so that large positions lose no precision; the tables of sines and cosines
// have floats, for the positions of one step.
//
// YaRN (arXiv 2309.00071, equations 17-23) with factor s, from pair `low` to pair `high`:
//   pair(turns) = dims * ln(original_context / (turns * 2 pi)) / (2 ln base)
//   low = floor(pair(beta_fast)) >= 0,  high = ceil(pair(beta_slow)) <= dims - 1
//   kept(i) = strength * (1 - clamp((i - low) / (high - low), 0, 1)),  f(i) *= kept + (1 - kept) / s
//   and the magnitude is multiplied by 1 + 0.1 ln s, where strength is not 0.
#pragma once

#include "mica/base/matrix_view.hpp"
#include "mica/kernel/elementwise.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <vector>

namespace mica::block {

/// Rotary embedding. The angle of pair i at position p is p * f(i); cosine and sine are multiplied by
/// `magnitude`.
///   f(i) = base^(-2i / dims) / (factors[i] * scale), bent by YaRN where it is on
struct RopeConfig {
  /// YaRN (Peng et al., arXiv 2309.00071): slow pairs are scaled by `factor`, fast ones are not.
  struct Yarn {
    double factor = 1;                 // 1: off
    std::size_t original_context = 0;  // tokens
    double beta_fast = 32;             // turns within original_context above which a pair is left alone
    double beta_slow = 1;              // turns below which it is scaled in full
    double strength = 1;               // 0: every pair is scaled
  };

  kernel::RopePairs pairs = kernel::RopePairs::adjacent;  // which numbers of a head rotate together
  std::size_t dims = 0;                                   // rotated numbers of a head, even
  double base = 10000;                                    // rope_theta of configurations
  double scale = 1;                                       // linear scaling
  std::vector<float> factors = {};                        // (dims / 2) or empty: all 1
  double magnitude = 1;                                   // factor of cosines and sines, before that of YaRN
  Yarn yarn = {};                                         // off, unless its factor is changed
  std::vector<float> long_factors = {};  // (dims / 2): in place of factors when n_ctx > original_context
  std::size_t original_context = 0;      // tokens; only read with long_factors
};

/// Frequencies of one RopeConfig.
class RopeFrequencies {
 public:
  /// n_ctx: tokens that a cache may hold; it chooses between the factors of a config that has long ones.
  explicit RopeFrequencies(const RopeConfig& config, std::size_t n_ctx = 0)
      : frequencies_(config.dims / 2), magnitude_(config.magnitude) {
    const bool far = !config.long_factors.empty() && n_ctx > config.original_context;
    const std::vector<float>& factors = far ? config.long_factors : config.factors;
    for (std::size_t i = 0; i < pairs(); ++i) {
      const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(config.dims);
      const double factor = factors.empty() ? 1.0 : static_cast<double>(factors[i]);
      frequencies_[i] = std::pow(config.base, exponent) / (factor * config.scale);
    }
    if (config.yarn.factor != 1) bend(config);
  }

  /// Pairs of a head that rotate.
  [[nodiscard]] std::size_t pairs() const noexcept { return frequencies_.size(); }
  /// Radians per position, by pair.
  [[nodiscard]] const std::vector<double>& frequencies() const noexcept { return frequencies_; }
  /// What all pairs are multiplied by.
  [[nodiscard]] double magnitude() const noexcept { return magnitude_; }

  /// Row r of the tables becomes the angles of position pos + r.
  void fill(std::size_t pos, MatrixView<float> cos, MatrixView<float> sin) const noexcept {  // (n, pairs)
    for (std::size_t r = 0; r < cos.rows(); ++r) {
      for (std::size_t i = 0; i < pairs(); ++i) {
        const double angle = static_cast<double>(pos + r) * frequencies_[i];
        cos[r][i] = static_cast<float>(std::cos(angle) * magnitude_);
        sin[r][i] = static_cast<float>(std::sin(angle) * magnitude_);
      }
    }
  }

 private:
  void bend(const RopeConfig& config) {
    const RopeConfig::Yarn& yarn = config.yarn;
    const double dims = static_cast<double>(config.dims);
    const auto pair = [&](double turns) {
      const double length = static_cast<double>(yarn.original_context) / (turns * 2 * std::numbers::pi);
      return dims * std::log(length) / (2 * std::log(config.base));
    };
    const double low = std::max(0.0, std::floor(pair(yarn.beta_fast)));
    const double high = std::min(dims - 1, std::ceil(pair(yarn.beta_slow)));
    for (std::size_t i = 0; i < frequencies_.size(); ++i) {
      const double way = (static_cast<double>(i) - low) / std::max(0.001, high - low);
      const double kept = yarn.strength * (1 - std::clamp(way, 0.0, 1.0));
      frequencies_[i] *= kept + (1 - kept) / yarn.factor;
    }
    if (yarn.strength != 0) magnitude_ *= 1 + 0.1 * std::log(yarn.factor);
  }

  std::vector<double> frequencies_;
  double magnitude_;
};

}  // namespace mica::block
