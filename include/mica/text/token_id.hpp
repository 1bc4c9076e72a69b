// SPDX-License-Identifier: Apache-2.0
//
// The number of a token in a vocabulary.
#pragma once

#include <cstdint>

namespace mica::text {

/// Index into a vocabulary; always smaller than its size.
using TokenId = std::uint32_t;

/// Stands for "no token" inside tables; never handed out.
inline constexpr TokenId no_token = 0xFFFF'FFFFU;

}  // namespace mica::text
