// SPDX-License-Identifier: Apache-2.0
//
// What a file says each token is for.
#pragma once

#include <cstdint>

namespace mica::text {

/// What a token is for; the numbers are those of GGUF files.
enum class TokenType : std::uint8_t { undefined, normal, unknown, control, user_defined, unused, byte };

}  // namespace mica::text
