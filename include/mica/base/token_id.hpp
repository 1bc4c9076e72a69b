// SPDX-License-Identifier: Apache-2.0
//
// The number of a token in a vocabulary: the one type that tokenizers, models and samplers share.
#pragma once

#include <cstdint>

namespace mica {

/// Index into a vocabulary; always smaller than its size.
using TokenId = std::uint32_t;

}  // namespace mica
