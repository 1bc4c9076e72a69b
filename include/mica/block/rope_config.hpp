// SPDX-License-Identifier: Apache-2.0
//
// A rotary embedding in numbers (block/rope.hpp computes its angles). A model has one or two; layers choose.
#pragma once

#include "mica/kernel/elementwise.hpp"

#include <cstddef>
#include <vector>

namespace mica::block {

/// Rotary embedding. The angle of pair i at position p is p * f(i); cosine and sine are multiplied by
/// `magnitude`.
///   f(i) = base^(-2i / dims) / (factors[i] * scale), bent by YaRN where it is on (block/rope.hpp)
struct RopeConfig {
  /// YaRN (Peng et al., arXiv 2309.00071): slow pairs are scaled by `factor`, fast ones are not.
  struct Yarn {
    double factor = 1;                 // 1: off
    std::size_t original_context = 0;  // tokens
    double beta_fast = 32;             // turns within original_context above which a pair is left alone
    double beta_slow = 1;              // turns below which it is scaled in full
    double strength = 1;               // 0: every pair is scaled
  };

  kernel::RopePairs pairs = kernel::RopePairs::adjacent;
  std::size_t dims = 0;  // rotated numbers of a head, even
  double base = 10000;
  double scale = 1;                 // linear scaling
  std::vector<float> factors = {};  // (dims / 2) or empty: all 1
  double magnitude = 1;
  Yarn yarn = {};
  std::vector<float> long_factors = {};  // (dims / 2): in place of factors when n_ctx > original_context
  std::size_t original_context = 0;      // tokens; only read with long_factors
};

}  // namespace mica::block
