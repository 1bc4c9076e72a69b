// SPDX-License-Identifier: Apache-2.0
//
// The type of each token in a file.
#pragma once

#include <cstdint>

namespace mica::text {

/// The type of a token; the numbers are those of GGUF files.
enum class TokenType : std::uint8_t { undefined, normal, unknown, control, user_defined, unused, byte };

}  // namespace mica::text
