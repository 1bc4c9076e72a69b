// SPDX-License-Identifier: Apache-2.0
//
// Changes of a GGUF header in place: values keep their sizes, so that the file around them stays whole.
#pragma once

#include "fuzz/input.hpp"
#include "mica/base/bytes.hpp"
#include "mica/gguf/reader.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace mica::fuzz {

/// Overwrites n bytes with a small number or with any one.
inline void overwrite(std::byte* at, std::size_t n, Input& input) {
  const auto number = input.flag() ? std::uint64_t{input.byte()} : input.number<std::uint64_t>();
  std::memcpy(at, &number, std::min(n, sizeof number));
}

/// Changes the value of a key in place, one element of an array. `metadata` views `bytes`.
inline void change_value(std::vector<std::byte>& bytes, const gguf::Metadata& metadata, std::size_t key,
                         Input& input) {
  const gguf::Value value = metadata.value(key);
  std::byte* at = bytes.data() + (value.bytes().data() - bytes.data());
  std::size_t n = value.bytes().size();
  if (value.is_array()) {
    const std::size_t each = value.size() == 0 ? 0 : (n - 12) / value.size();
    if (each == 0 || value.element_type() == gguf::ValueType::string) return;
    at += 12 + each * input.below(std::min<std::size_t>(value.size(), 1 << 16));
    n = each;
  } else if (value.type() == gguf::ValueType::string) {
    if (n == 8) return;
    at += 8 + input.below(std::min<std::size_t>(n - 8, 1 << 16));
    n = 1;
  }
  overwrite(at, n, input);
}

/// Changes the name, a dimension, the format or the offset in the entry of a tensor. Requires a header in
/// `bytes`.
inline void change_tensor(std::vector<std::byte>& bytes, const gguf::TensorInfo& tensor, Input& input) {
  std::vector<std::byte> begin(8);
  const std::uint64_t size = tensor.name.size();
  std::memcpy(begin.data(), &size, sizeof size);
  for (const char c : tensor.name) begin.push_back(static_cast<std::byte>(c));
  const auto found = std::search(bytes.begin(), bytes.end(), begin.begin(), begin.end());
  if (found == bytes.end()) return;
  std::byte* const entry =
      bytes.data() + (found - bytes.begin()) + begin.size();  // n_dims, dims, type, offset
  const std::size_t dims = 4 + 8 * std::size_t{tensor.n_dims};
  switch (input.below(4)) {
    case 0:
      return overwrite(entry - 1 - input.below(tensor.name.size()), 1, input);
    case 1:
      return overwrite(entry + 4 + 8 * input.below(tensor.n_dims), 8, input);
    case 2:
      return overwrite(entry + dims, 4, input);
    default:
      return overwrite(entry + dims + 4, 8, input);
  }
}

}  // namespace mica::fuzz
