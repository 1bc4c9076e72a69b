// SPDX-License-Identifier: Apache-2.0
//
// Time limits and credentials of a client, and the token in the environment, which is sent to one site only.
#pragma once

#include "mica/base/assert.hpp"
#include "mica_tools/remote/url.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
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
  std::size_t redirects = 5;

  std::uint64_t first_bytes = std::uint64_t{64} << 10;  ///< of the first request: headers of later shards fit
  std::uint64_t piece_bytes = std::uint64_t{2} << 20;   ///< of a later one: fewer bytes are requested in vain
};

/// HF_TOKEN, where the URL is of the site that it is for: that of HF_ENDPOINT, https://huggingface.co if
/// there is none. Else empty. Raises ErrorCode::usage for a token that cannot stand in a request, and for an
/// endpoint that is no URL.
[[nodiscard]] inline std::string token_for(const Url& url) {
  const char* const token = std::getenv("HF_TOKEN");
  if (token == nullptr || *token == 0) return {};
  const char* const endpoint = std::getenv("HF_ENDPOINT");
  const bool elsewhere = endpoint != nullptr && *endpoint != 0;
  if (url.origin() != Url::parse(elsewhere ? endpoint : "https://huggingface.co").origin()) return {};
  const std::string text = token;
  MICA_CHECK(std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7F; }), usage,
             "HF_TOKEN holds a blank or a control byte, which no token has");
  return text;
}

}  // namespace mica::remote
