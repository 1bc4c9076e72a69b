// SPDX-License-Identifier: Apache-2.0
//
// Below 1 likely tokens become likelier, above 1 probabilities become more equal.
#pragma once

#include "mica/sample/concept.hpp"
#include "mica/sample/detail/range.hpp"

namespace mica::sample {

/// Divides every logit by the temperature, after moving the best one to zero so that nothing overflows.
class Temperature : public Memoryless {
 public:
  static constexpr float min = 1e-6f;
  static constexpr float max = 1e6f;

  /// least <= temperature <= most, else raises. Zero has no quotient: it is the stage Greedy.
  explicit Temperature(float temperature)
      : temperature_(
            detail::in_range("temperature", temperature, min, max, ", or 0 for always the best token")) {}

  // Required by SamplerStage
  void apply(Candidates& candidates) noexcept {
    if (temperature_ == 1.0f) return;
    const float top = candidates[candidates.best()].logit;
    for (Candidate& candidate : candidates.span()) candidate.logit = (candidate.logit - top) / temperature_;
    // Logits that differed may have become equal, and equal ones stand by id.
    candidates.forget_order();
  }

 private:
  float temperature_;
};
static_assert(SamplerStage<Temperature>);

}  // namespace mica::sample
