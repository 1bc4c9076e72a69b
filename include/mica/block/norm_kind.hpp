// SPDX-License-Identifier: Apache-2.0
//
// The norm of the residual stream, the same everywhere in a model.
#pragma once

#include <cstdint>

namespace mica::block {

/// Formulas: kernel/elementwise.hpp.
enum class NormKind : std::uint8_t {
  rms,    ///< RMSNorm
  layer,  ///< LayerNorm
};

}  // namespace mica::block
