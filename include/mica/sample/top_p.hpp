// SPDX-License-Identifier: Apache-2.0
//
// The nucleus: the fewest candidates whose probabilities reach p together (Holtzman et al., ICLR 2020).
#pragma once

#include "mica/sample/concept.hpp"
#include "mica/sample/detail/range.hpp"

#include <algorithm>
#include <cstddef>

namespace mica::sample {

/// Keeps the best candidates, in order, until their probabilities add up to p; at least one. 1 keeps all.
class TopP : public Memoryless {
 public:
  /// 0 <= p <= 1, else raises.
  explicit TopP(float p) : p_(detail::in_range("top-p", p, 0.0f, 1.0f)) {}

  // Required by SamplerStage
  void apply(Candidates& candidates) noexcept {
    if (p_ >= 1.0f) return;
    candidates.softmax();
    double sum = 0.0;
    std::size_t n = 0;
    // Sorted in growing stretches: the nucleus of a large vocabulary is usually small.
    for (std::size_t stretch = 64; n < candidates.size(); stretch *= 4) {
      const std::size_t end = std::min(stretch, candidates.size());
      candidates.sort_best(end);
      while (n < end) {
        sum += static_cast<double>(candidates[n].p);
        ++n;
        if (sum >= static_cast<double>(p_)) return candidates.keep_front(n);
      }
    }
  }

 private:
  float p_;
};
static_assert(SamplerStage<TopP>);

}  // namespace mica::sample
