// SPDX-License-Identifier: Apache-2.0
//
// The draw itself.
#pragma once

#include "mica/base/rng.hpp"
#include "mica/sample/concept.hpp"

#include <cstddef>
#include <cstdint>

namespace mica::sample {

/// Chooses a candidate with its probability. One random number is drawn per token, needed or not, so that the
/// n-th token of a seed has the n-th number for any candidates.
class Dist : public Memoryless {
 public:
  explicit Dist(CounterRng rng) noexcept : rng_(rng) {}
  explicit Dist(std::uint64_t seed) noexcept : Dist(CounterRng(seed)) {}

  [[nodiscard]] const CounterRng& rng() const noexcept { return rng_; }

  // Required by SamplerStage
  void apply(Candidates& candidates) noexcept {
    const double drawn = rng_.uniform();
    candidates.softmax();
    double all = 0.0;
    for (const Candidate& candidate : candidates.span()) all += static_cast<double>(candidate.p);
    // p is rounded to float, so the sum is only about one; the last that is possible takes what rounding
    // leaves over.
    double sum = 0.0;
    std::size_t chosen = 0;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      if (candidates[i].p == 0.0f) continue;
      chosen = i;
      sum += static_cast<double>(candidates[i].p);
      if (sum > drawn * all) break;
    }
    candidates.choose(chosen);
  }

 private:
  CounterRng rng_;
};
static_assert(SamplerStage<Dist>);

}  // namespace mica::sample
