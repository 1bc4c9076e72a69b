// SPDX-License-Identifier: Apache-2.0
//
// Which pages of a mapped file are in memory.
#pragma once

#include "mica/io/map.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <vector>
#include <sys/mman.h>

namespace mica::test {

/// Pages of a mapping that are in memory.
inline std::size_t pages_there(const io::Mapping& mapping) {
  std::vector<unsigned char> there((mapping.bytes().size() + 4095) / 4096);
  auto* const at = const_cast<std::byte*>(mapping.bytes().data());
  REQUIRE(::mincore(at, mapping.bytes().size(), there.data()) == 0);
  return static_cast<std::size_t>(std::ranges::count_if(there, [](unsigned char p) { return (p & 1) != 0; }));
}

}  // namespace mica::test
