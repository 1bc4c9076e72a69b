// SPDX-License-Identifier: Apache-2.0
//
// The number of contexts that a model fills at the same time, and their tokens: each has keys and values.
// Tiles that caches may share are counted for each.
#pragma once

#include <cstddef>

namespace mica::plan {

struct Sequences {
  std::size_t count = 1;
  std::size_t tokens = 0;  // of each context but the first; 0: as many as the first one
  /// The maximum of all contexts, each rounded up to whole tiles; the first ones take them first. 0: no
  /// limit.
  std::size_t total_tokens = 0;
};

}  // namespace mica::plan
