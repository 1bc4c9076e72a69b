// SPDX-License-Identifier: Apache-2.0
//
// How many contexts a model fills at the same time, and how far: each of them takes memory for its keys and values.
// What caches may share is counted for each.
#pragma once

#include <cstddef>

namespace mica::plan {

struct Sequences {
  std::size_t count = 1;
  std::size_t tokens = 0;  // that each but the first one holds; 0: as many as the first one
};

}  // namespace mica::plan
