// SPDX-License-Identifier: Apache-2.0
//
// A path in an error text. File names may come from index files, shards and downloaded folders, and messages
// go to terminals and logs.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace mica::io::detail {

/// The path with control bytes, C1 and the controls of text direction as \xNN; of more than 512 bytes the
/// first 384 and the last 128.
[[nodiscard]] inline std::string shown(std::string_view path) {
  constexpr char digits[] = "0123456789abcdef";
  constexpr std::size_t first = 384, last = 128;
  // Bytes at `at` that are one control: 0 for none.
  const auto control = [path](std::size_t at) -> std::size_t {
    const auto byte = [&](std::size_t i) {
      return at + i < path.size() ? static_cast<unsigned char>(path[at + i]) : 0u;
    };
    if (byte(0) < 0x20 || byte(0) == 0x7F) return 1;
    if (byte(0) == 0xC2 && byte(1) >= 0x80 && byte(1) < 0xA0) return 2;
    if (byte(0) == 0xE2 && byte(1) == 0x80 && byte(2) >= 0xAA && byte(2) <= 0xAE) return 3;
    if (byte(0) == 0xE2 && byte(1) == 0x81 && byte(2) >= 0xA6 && byte(2) <= 0xA9) return 3;
    return 0;
  };
  std::string out;
  for (std::size_t at = 0, escaped = 0; at < path.size(); ++at) {
    if (at == first && path.size() > first + last) {
      out += "...";
      at = path.size() - last;
      escaped = 0;
    }
    if (escaped == 0) escaped = control(at);
    if (escaped == 0) {
      out += path[at];
    } else {
      --escaped;
      const auto byte = static_cast<unsigned char>(path[at]);
      out += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
    }
  }
  return out;
}

}  // namespace mica::io::detail
