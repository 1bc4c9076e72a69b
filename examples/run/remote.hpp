// SPDX-License-Identifier: Apache-2.0
//
// Models that are named by a URL: opened by their headers, or refused where weights are needed.
#pragma once

#include "mica/gguf/reader.hpp"
#include "verb.hpp"

#include <string>

namespace mica::program {

/// The model behind a URL. Raises as remote::open(), and ErrorCode::unsupported when the program was built
/// without an HTTP library.
[[nodiscard]] gguf::Document open_remote(const std::string& url);

/// Raises ErrorCode::unsupported where the model is named by a URL and the verb needs more than a
/// header. Sends no request.
void refuse_url(const Verb& verb);

}  // namespace mica::program
