// SPDX-License-Identifier: Apache-2.0
//
// Rows of numbers as text. Written by hand: a tree of JSON takes many times the bytes of its numbers.
#pragma once

#include "mica_tools/json/base64.hpp"

#include <bit>
#include <charconv>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace mica {

/// "0.1 0.2": each the shortest decimal number that reads back as the same float, `between` between them. The
/// numbers are finite.
inline void append_numbers(std::string& out, std::span<const float> row, char between) {
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (i != 0) out += between;
    char text[32];
    const auto [end, error] = std::to_chars(text, text + sizeof text, row[i]);
    out.append(text, end);
  }
}
/// The same as JSON: "[0.1,0.2]".
inline void append_row(std::string& out, std::span<const float> row) {
  out += '[';
  append_numbers(out, row, ',');
  out += ']';
}

/// The same as a text of Base64: float32 in the order of bytes of x86, as OpenAI has it.
inline void append_base64_row(std::string& out, std::span<const float> row) {
  static_assert(std::endian::native == std::endian::little, "floats are written as they are in memory");
  const auto bytes = std::as_bytes(row);
  out += '"';
  out += base64_encoded({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  out += '"';
}

}  // namespace mica
