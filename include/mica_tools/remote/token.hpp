// SPDX-License-Identifier: Apache-2.0
//
// The token in the environment for files with restricted access. It is sent to one site only.
#pragma once

#include "mica/base/assert.hpp"
#include "mica_tools/remote/url.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>

namespace mica::remote {

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
