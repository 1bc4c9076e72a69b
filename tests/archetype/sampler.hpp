// SPDX-License-Identifier: Apache-2.0
//
// The minimal Sampler: it always chooses the most likely token.

#pragma once

#include "mica/sample/concept.hpp"

#include <algorithm>
#include <optional>
#include <span>

namespace mica::archetype {

/// Neither copied nor moved.
class Sampler {
 public:
  Sampler() = default;
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  // Required by Sampler
  [[nodiscard]] std::optional<mica::TokenId> sample(std::span<const float> logits) {
    return static_cast<mica::TokenId>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  }
  void accept(mica::TokenId /*token*/) {}
};
static_assert(mica::Sampler<Sampler>);

}  // namespace mica::archetype
