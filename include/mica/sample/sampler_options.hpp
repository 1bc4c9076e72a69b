// SPDX-License-Identifier: Apache-2.0
//
// The options of sampling; names and defaults are the usual ones of other engines. The state of a sampler
// besides them: enough to continue elsewhere with the same tokens.
#pragma once

#include "mica/sample/candidates.hpp"

#include <cstdint>
#include <vector>

namespace mica::sample {

/// Options of the standard sampler, which checks the ranges when it is made.
struct SamplerOptions {
  float temperature = 0.8f;         ///< 0 and below: greedy, and nothing below but the penalties counts
  std::int64_t top_k = 40;          ///< 0: all
  float top_p = 0.95f;              ///< 1: all
  float min_p = 0.05f;              ///< 0: all
  float repeat_penalty = 1.0f;      ///< 1: none
  std::int64_t repeat_last_n = 64;  ///< tokens that penalties count; 0: none
  float frequency_penalty = 0.0f;   ///< 0: none
  float presence_penalty = 0.0f;    ///< 0: none
  std::uint64_t seed = 0;
};

/// The state of sample::Standard, as values.
struct SamplerState {
  std::uint64_t seed = 0;
  std::uint64_t counter = 0;     ///< numbers drawn so far
  std::vector<TokenId> history;  ///< the last tokens accepted, the oldest first

  friend bool operator==(const SamplerState&, const SamplerState&) = default;
};

}  // namespace mica::sample
