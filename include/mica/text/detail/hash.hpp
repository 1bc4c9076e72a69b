// SPDX-License-Identifier: Apache-2.0
//
// The hash of a text for the tables of this room. Not for files, not for secrets: collisions can be
// made on purpose, which is why the tables bound their probing.
#pragma once

#include "mica/base/rng.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace mica::text::detail {

/// Hash of a byte string, eight bytes at a time.
inline std::uint64_t hash(std::string_view bytes) noexcept {
  std::uint64_t h = bytes.size();
  while (!bytes.empty()) {
    std::uint64_t word = 0;
    const std::size_t n = bytes.size() < 8 ? bytes.size() : 8;
    std::memcpy(&word, bytes.data(), n);
    h = mix64(h ^ word) + word;
    bytes.remove_prefix(n);
  }
  return mix64(h);
}

}  // namespace mica::text::detail
