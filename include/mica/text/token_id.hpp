// SPDX-License-Identifier: Apache-2.0
//
// The number of a token, as tokenizers use it.
#pragma once

#include "mica/base/token_id.hpp"

namespace mica::text {

using mica::TokenId;

/// Stands for "no token" inside tables; never handed out.
inline constexpr TokenId no_token = 0xFFFF'FFFFU;

}  // namespace mica::text
