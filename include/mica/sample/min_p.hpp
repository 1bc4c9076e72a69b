// SPDX-License-Identifier: Apache-2.0
//
// A minimum relative to the best: few candidates remain where the model is certain, many where it is not.
#pragma once

#include "mica/sample/concept.hpp"
#include "mica/sample/detail/range.hpp"

#include <cmath>

namespace mica::sample {

/// Drops candidates less than `p` times as probable as the best. 0 drops none.
class MinP : public Memoryless {
 public:
  /// 0 <= p <= 1, else raises.
  explicit MinP(float p)
      : p_(detail::in_range("min-p", p, 0.0f, 1.0f)), log_p_(std::log(static_cast<double>(p))) {}

  // Required by SamplerStage
  void apply(Candidates& candidates) noexcept {
    if (p_ == 0.0f) return;
    const double floor = static_cast<double>(candidates[candidates.best()].logit) + log_p_;
    candidates.keep_if(
        [floor](const Candidate& candidate) { return static_cast<double>(candidate.logit) >= floor; });
  }

 private:
  float p_;
  double log_p_;
};
static_assert(SamplerStage<MinP>);

}  // namespace mica::sample
