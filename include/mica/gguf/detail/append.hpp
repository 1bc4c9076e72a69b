// SPDX-License-Identifier: Apache-2.0
//
// Numbers and texts as the bytes that SpanReader reads: little-endian, a text after its length.
#pragma once

#include "mica/base/bytes.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <vector>

namespace mica::gguf {

template <class T>
requires std::is_arithmetic_v<T>
void append_number(std::vector<std::byte>& out, T value) {
  const auto bytes = bytes_of(&value, 1);
  out.insert(out.end(), bytes.begin(), bytes.end());
}

inline void append_text(std::vector<std::byte>& out, std::string_view text) {
  append_number(out, std::uint64_t{text.size()});
  const auto bytes = bytes_of(text.data(), text.size());
  out.insert(out.end(), bytes.begin(), bytes.end());
}

/// Numbers after how many they are.
template <class T>
void append_list(std::vector<std::byte>& out, const std::vector<T>& list) {
  append_number(out, std::uint64_t{list.size()});
  for (const T number : list) append_number(out, number);
}

}  // namespace mica::gguf
