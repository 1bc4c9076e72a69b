// SPDX-License-Identifier: Apache-2.0
//
// What the blocks of one layer must know, in numbers. Families fill it from a file's metadata (arch/config.hpp).
#pragma once

#include "mica/kernel/rope.hpp"

#include <cstddef>
#include <vector>

namespace mica::block {

/// One layer. Widths in numbers per token.
struct LayerConfig {
  std::size_t heads = 0;
  std::size_t kv_heads = 0;  // divides heads
  std::size_t head_dim = 0;
  std::size_t ff_width = 0;

  [[nodiscard]] std::size_t q_width() const noexcept { return heads * head_dim; }
  [[nodiscard]] std::size_t kv_width() const noexcept { return kv_heads * head_dim; }
  [[nodiscard]] std::size_t group() const noexcept { return heads / kv_heads; }
};

/// Rotary embedding: angle of pair i at position p is p * base^(-2i / dims) / (factors[i] * scale).
struct RopeConfig {
  kernel::RopePairs pairs = kernel::RopePairs::adjacent;
  std::size_t dims = 0;  // rotated numbers of a head, even
  double base = 10000;
  double scale = 1;            // linear scaling
  std::vector<float> factors;  // (dims / 2) or empty: all 1
};

}  // namespace mica::block
