// SPDX-License-Identifier: Apache-2.0
//
// Mixing of bytes and integers for the tables of this room. Not for files, not for secrets: collisions can be
// made on purpose, which is why the tables bound their probing.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace mica::text::detail {

/// Spreads every input bit over all output bits.
constexpr std::uint64_t mixed(std::uint64_t x) noexcept {
  x ^= x >> 32;
  x *= 0x9E37'79B9'7F4A'7C15U;
  x ^= x >> 29;
  x *= 0xBF58'476D'1CE4'E5B9U;
  return x ^ (x >> 32);
}

/// Hash of a byte string, eight bytes at a time.
inline std::uint64_t hash(std::string_view bytes) noexcept {
  std::uint64_t h = bytes.size();
  while (!bytes.empty()) {
    std::uint64_t word = 0;
    const std::size_t n = bytes.size() < 8 ? bytes.size() : 8;
    std::memcpy(&word, bytes.data(), n);
    h = mixed(h ^ word) + word;
    bytes.remove_prefix(n);
  }
  return mixed(h);
}

}  // namespace mica::text::detail
