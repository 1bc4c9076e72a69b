// SPDX-License-Identifier: Apache-2.0
//
// What the program sets for all routes.
#pragma once

#include "mica/arch/config.hpp"
#include "mica/sample/sampler_options.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace mica::serve {

/// The number of llama-server for a seed that is random for each request.
inline constexpr std::uint64_t any_seed = 0xFFFFFFFF;

struct RouteOptions {
  sample::SamplerOptions sampler = {.seed = any_seed};  // where a request has no value
  std::size_t max_tokens = 0;   // of an answer whose request has no maximum; 0: to the end of the context
  std::size_t max_running = 1;  // answers at the same time, for total_slots of /props
  /// Of embeddings whose request and model say none; empty: they are refused.
  std::optional<arch::Pooling> pooling = {};
  std::string version = {};                // of the program
  std::chrono::milliseconds ping{30'000};  // between comments in a stream without events
};

}  // namespace mica::serve
