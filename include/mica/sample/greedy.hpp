// SPDX-License-Identifier: Apache-2.0
//
// Always the best candidate.
#pragma once

#include "mica/sample/concept.hpp"

namespace mica::sample {

/// Chooses the candidate with the largest logit, of equal ones the lowest id.
class Greedy : public Memoryless {
 public:
  // Required by SamplerStage
  void apply(Candidates& candidates) noexcept { candidates.choose(candidates.best()); }
};
static_assert(SamplerStage<Greedy>);

}  // namespace mica::sample
