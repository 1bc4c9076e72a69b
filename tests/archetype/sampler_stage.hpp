// SPDX-License-Identifier: Apache-2.0
//
// The minimal SamplerStage: it leaves the candidate with the lowest id.

#pragma once

#include "mica/sample/concept.hpp"

namespace mica::archetype {

class SamplerStage {
 public:
  // Required by ChoosingStage
  static constexpr bool chooses = true;

  // Required by SamplerStage
  void apply(mica::sample::Candidates& candidates) noexcept {
    std::size_t lowest = 0;
    for (std::size_t i = 1; i < candidates.size(); ++i) {
      if (candidates[i].id < candidates[lowest].id) lowest = i;
    }
    candidates.choose(lowest);
  }
  void accept(mica::sample::TokenId /*token*/) noexcept {}
};
static_assert(mica::ChoosingStage<SamplerStage>);

}  // namespace mica::archetype
