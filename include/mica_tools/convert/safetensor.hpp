// SPDX-License-Identifier: Apache-2.0
//
// The header entry of one tensor in a safetensors file, without its numbers.
#pragma once

#include "mica/base/error.hpp"
#include "mica_tools/convert/dtype.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace mica::convert {

/// A tensor of a Hugging Face checkpoint.
struct Safetensor {
  static constexpr std::size_t max_dims = 8;

  std::string name;
  Dtype dtype = Dtype::F32;
  std::vector<std::uint64_t> shape;  ///< the last varies fastest; empty: one number
  std::uint64_t offset = 0;          ///< of the first byte, from the beginning of the file
  std::uint64_t bytes = 0;

  /// "[4096, 1024]", as Python shows it.
  [[nodiscard]] std::string shape_text() const {
    std::string text = "[";
    for (const std::uint64_t dim : shape) text += join(text.size() > 1 ? ", " : "", dim);
    return text + "]";
  }
};

}  // namespace mica::convert
