// SPDX-License-Identifier: Apache-2.0
//
// How blocks of a format are written. A format that is worth a search specialises Encoder in a header of its
// own, so that programs that only read files compile none of it; a format with `encode` alone is rounded
// block by block.
#pragma once

#include "mica/format/concept.hpp"

namespace mica::format {

/// Writes one block of F. A format that can only be read has none.
template <class F>
struct Encoder;

template <EncodableFormat F>
struct Encoder<F> {
  /// `values` and `weights` are block_size numbers; every weight is positive and finite.
  /// The weights are factors of each value's squared error; this template does not use them. Values that are
  /// not finite give a block, but not a useful one.
  static void encode(const float* values, const float* weights, typename F::Block& block) noexcept {
    static_cast<void>(weights);
    F::encode(values, block);
  }
};

}  // namespace mica::format
