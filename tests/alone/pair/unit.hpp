// SPDX-License-Identifier: Apache-2.0
//
// What a unit of a pair knows of the library, and can do with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

struct Unit {
  const char* name;
  std::vector<std::size_t> sizes;  // of classes that hold what a part serves
  std::uint64_t (*checksum)(const std::string& bytes);
  std::size_t (*words)(const std::string& text);
};

/// All units of the program, in the order in which they were linked.
std::vector<Unit>& units();
