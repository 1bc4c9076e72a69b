// SPDX-License-Identifier: Apache-2.0
//
// Time limits and credentials of a client.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace mica::remote {

/// The defaults are those of the program. Every wait has a limit.
struct Options {
  std::string token;  ///< for files with restricted access; sent to the requested host only

  std::chrono::milliseconds connect{10'000};  ///< until a connection is established
  std::chrono::milliseconds silence{15'000};  ///< between two pieces of an answer
  std::chrono::milliseconds answer{60'000};   ///< for one whole answer

  std::size_t tries = 4;                            ///< of a request that may succeed later
  std::chrono::milliseconds pause{250};             ///< before the second try; doubles each time
  std::chrono::milliseconds longest_pause{10'000};  ///< that a server may ask for
  std::size_t redirects = 5;                        ///< that are followed; more are an error

  /// When it is true, answers and pauses end within 0.1 s and no request is repeated.
  const std::atomic<bool>* stop = nullptr;

  std::uint64_t first_bytes = std::uint64_t{64} << 10;  ///< of the first request: headers of later shards fit
  std::uint64_t piece_bytes = std::uint64_t{2} << 20;   ///< of a later one: fewer bytes are requested in vain
};

}  // namespace mica::remote
