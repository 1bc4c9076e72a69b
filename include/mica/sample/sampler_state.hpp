// SPDX-License-Identifier: Apache-2.0
//
// The state of a sampler besides its options: enough to continue elsewhere with the same tokens.
#pragma once

#include "mica/sample/candidates.hpp"

#include <cstdint>
#include <vector>

namespace mica::sample {

/// The state of sample::Standard, as values.
struct SamplerState {
  std::uint64_t seed = 0;
  std::uint64_t counter = 0;     ///< numbers drawn so far
  std::vector<TokenId> history;  ///< the last tokens accepted, the oldest first

  friend bool operator==(const SamplerState&, const SamplerState&) = default;
};

}  // namespace mica::sample
