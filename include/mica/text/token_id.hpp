// SPDX-License-Identifier: Apache-2.0
//
// The number of a token, as tokenizers use it, and the type of each token in a file.
#pragma once

#include "mica/base/token_id.hpp"

#include <cstdint>

namespace mica::text {

using mica::TokenId;

/// Stands for "no token" inside tables; never handed out.
inline constexpr TokenId no_token = 0xFFFF'FFFFU;

/// The type of a token; the numbers are those of GGUF files.
enum class TokenType : std::uint8_t { undefined, normal, unknown, control, user_defined, unused, byte };

}  // namespace mica::text
