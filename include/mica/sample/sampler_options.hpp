// SPDX-License-Identifier: Apache-2.0
//
// The options of sampling; names and defaults are the usual ones of other engines. And the state of a
// sampler, which together with the options is enough to continue in another process with the same tokens.
#pragma once

#include "mica/sample/candidates.hpp"

#include <cstdint>
#include <vector>

namespace mica::sample {

/// A number that is added to the logit of a token; -infinity forbids it.
struct TokenBias {
  TokenId id;  // a token outside the vocabulary has no effect
  float bias;  // -1e9 to 1e9, or -infinity; several biases of one token are added
};

/// The penalty for repetitions of sequences (dry.hpp).
struct DryOptions {
  float multiplier = 0.0f;                          ///< 0: none
  float base = 1.75f;                               ///< the factor for each further token of a repetition
  std::int64_t allowed_length = 2;                  ///< shorter repetitions are not penalised
  std::int64_t last_n = 64;                         ///< tokens that are searched; 0: none
  std::vector<std::vector<TokenId>> breakers = {};  ///< sequences that no repetition extends over
};

/// The stages of the standard sampler, in their standard order; each is set by the options of its name.
enum class Stage : std::uint8_t {
  penalties,  ///< repeat, frequency and presence
  dry,
  top_n_sigma,
  top_k,
  typical,
  top_p,
  min_p,
  xtc,
  temperature  ///< with its dynatemp_range
};

/// Options of the standard sampler, which checks the ranges when it is made.
struct SamplerOptions {
  float temperature = 0.8f;         ///< at most 10000; 0 and below: greedy, after biases, penalties, DRY
  std::int64_t top_k = 40;          ///< 0: all
  float top_p = 0.95f;              ///< 1: all
  float min_p = 0.05f;              ///< 0: all
  float repeat_penalty = 1.0f;      ///< 1: none
  std::int64_t repeat_last_n = 64;  ///< tokens that penalties count; 0: none
  float frequency_penalty = 0.0f;   ///< 0: none
  float presence_penalty = 0.0f;    ///< 0: none
  std::uint64_t seed = 0;           ///< of the random numbers; 0 is a seed too
  DryOptions dry = {};              ///< off by default
  float top_n_sigma = -1.0f;        ///< 0 and below: all
  float typical = 1.0f;             ///< 1: all
  float xtc_probability = 0.0f;     ///< 0: never
  float xtc_threshold = 0.1f;       ///< above 0.5: never
  float dynatemp_range = 0.0f;      ///< around the temperature; 0: none
  float dynatemp_exponent = 1.0f;   ///< of the normalised entropy (Temperature)
  int mirostat = 0;                 ///< 1, 2: the version; replaces top_n_sigma to xtc; 0: off
  float mirostat_tau = 5.0f;        ///< target surprise in bits
  float mirostat_eta = 0.1f;        ///< learning rate
  std::vector<TokenBias> logit_bias = {};  ///< added before all stages
  std::vector<Stage> order = {};  ///< stages that are not in it are off; empty: all, in standard order
};

/// The state of sample::Standard, as values.
struct SamplerState {
  std::uint64_t seed = 0;        ///< that of the options
  std::uint64_t counter = 0;     ///< numbers drawn so far
  std::vector<TokenId> history;  ///< the last tokens accepted, the oldest first
  float mu = 0.0f;               ///< the mu of Mirostat; 0: no Mirostat

  friend bool operator==(const SamplerState&, const SamplerState&) = default;
};

}  // namespace mica::sample
