// SPDX-License-Identifier: Apache-2.0
//
// What a sampler knows besides its options: enough to go on elsewhere as if nothing had happened.
#pragma once

#include "mica/sample/candidates.hpp"

#include <cstdint>
#include <vector>

namespace mica::sample {

/// The state of a Sampler, as values.
struct SamplerState {
  std::uint64_t seed = 0;
  std::uint64_t counter = 0;     ///< numbers drawn so far
  std::vector<TokenId> history;  ///< the last tokens accepted, the oldest first

  friend bool operator==(const SamplerState&, const SamplerState&) = default;
};

}  // namespace mica::sample
