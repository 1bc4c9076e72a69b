// SPDX-License-Identifier: Apache-2.0
//
// The byte alphabet of GPT-2: byte-level BPE files spell each byte as one printable character, so that "\n"
// is U+010A and a space is U+0120. Bytes that print stand for themselves, the other 68 follow from U+0100 on.
#pragma once

#include "mica/text/utf8.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace mica::text {

namespace detail {

constexpr bool stands_for_itself(std::size_t byte) noexcept {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

/// The character of each byte.
inline constexpr std::array<std::uint16_t, 256> byte_alphabet = [] {
  std::array<std::uint16_t, 256> out = {};
  std::uint16_t next = 0x100;
  for (std::size_t byte = 0; byte < 256; ++byte) {
    out[byte] = stands_for_itself(byte) ? static_cast<std::uint16_t>(byte) : next++;
  }
  return out;
}();

/// The byte of each character below U+0144, or -1.
inline constexpr std::array<std::int16_t, 0x144> byte_of_character = [] {
  std::array<std::int16_t, 0x144> out = {};
  out.fill(-1);
  for (std::size_t byte = 0; byte < 256; ++byte) out[byte_alphabet[byte]] = static_cast<std::int16_t>(byte);
  return out;
}();

}  // namespace detail

/// Adds the bytes in the spelling of byte-level BPE files.
inline void append_spelled(std::string_view bytes, std::string& out) {
  for (const char c : bytes) {
    const std::uint16_t character = detail::byte_alphabet[static_cast<unsigned char>(c)];
    if (character < 0x80) {
      out.push_back(static_cast<char>(character));
    } else {
      out.push_back(static_cast<char>(0xC0 | character >> 6));
      out.push_back(static_cast<char>(0x80 | (character & 0x3F)));
    }
  }
}

/// Adds the bytes that a token of a byte-level BPE file spells; what is not of the alphabet stays as it is.
inline void append_unspelled(std::string_view spelled, std::string& out) {
  while (!spelled.empty()) {
    const std::size_t n = utf8_sequence_bytes(spelled);
    const auto lead = static_cast<unsigned char>(spelled[0]);
    const auto second = static_cast<unsigned char>(n == 2 ? spelled[1] : 0);
    const unsigned character = n == 2 ? (lead & 0x1FU) << 6 | (second & 0x3FU) : lead;
    if ((n == 1 || n == 2) && character < 0x144 && detail::byte_of_character[character] >= 0) {
      out.push_back(static_cast<char>(detail::byte_of_character[character]));
    } else {
      out.append(spelled.substr(0, n == 0 ? 1 : n));
    }
    spelled.remove_prefix(n == 0 ? 1 : n);
  }
}

}  // namespace mica::text
