// SPDX-License-Identifier: Apache-2.0
//
// The header entry of one tensor in a GGUF file or in the manifest of a packed directory, without its
// numbers.
#pragma once

#include "mica/base/error.hpp"
#include "mica/format/id.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace mica::gguf {

/// A tensor's name, shape, type and place, checked: its bytes are in the file, and in no other tensor.
struct TensorInfo {
  static constexpr std::size_t max_dims = 4;  // as in ggml

  std::string name;
  std::array<std::uint64_t, max_dims> dims = {1, 1, 1,
                                              1};  ///< the first varies fastest; those not given are 1
  std::uint8_t n_dims = 1;                         ///< 1..4, as the file gives them
  std::uint32_t source = 0;                        ///< which file of a sharded model: Document::source()
  format::Info format{};                           ///< may be a type that nothing here computes with
  std::uint64_t offset = 0;                        ///< of the first byte, from the beginning of its file
  std::uint64_t bytes = 0;

  // Of a packed directory (gguf/detail/packed_files.hpp) alone
  bool packed = false;                        ///< the rows of each part lie as in tensor/detail/rows16.hpp
  std::uint32_t parts = 1;                    ///< as many of equal size: experts
  std::uint64_t stride = 0;                   ///< from one part to the next, in bytes; 0 with one part
  std::vector<std::uint64_t> checksums = {};  ///< of each part as it lies there; empty: none are known

  /// Values in a row, the dimension that varies fastest.
  [[nodiscard]] std::uint64_t width() const noexcept { return dims[0]; }
  /// Rows, all further dimensions multiplied.
  [[nodiscard]] std::uint64_t rows() const noexcept { return dims[1] * dims[2] * dims[3]; }
  [[nodiscard]] std::uint64_t elements() const noexcept { return width() * rows(); }  // values
  /// A tensor without values may stand in a file; asking a Document for it is refused.
  [[nodiscard]] bool empty() const noexcept { return bytes == 0; }
  /// Of one part.
  [[nodiscard]] std::uint64_t part_bytes() const noexcept { return bytes / parts; }
  [[nodiscard]] std::uint64_t part_rows() const noexcept { return rows() / parts; }

  /// The shape as texts show it: "2048 x 32000".
  [[nodiscard]] std::string shape() const {
    std::string text = join(dims[0]);
    for (std::size_t d = 1; d < n_dims; ++d) text += join(" x ", dims[d]);
    return text;
  }
};

/// A part of a tensor in its file.
struct PlacedTensor {
  std::uint64_t offset = 0;            // of its first byte, from the beginning of the file
  const TensorInfo* tensor = nullptr;  // which outlives this
  std::uint32_t part = 0;              // below tensor->parts

  /// The error text for a part whose bytes have another checksum.
  [[nodiscard]] std::string damage_text(const std::string& path) const {
    return join(path, ": tensor '", escaped(tensor->name), "'",
                tensor->parts > 1 ? join(", part ", part, " of ", tensor->parts, ",") : "",
                " is damaged: its bytes are not those of the checksum in the manifest; pack the model again");
  }
};

/// The parts of tensors, by file and place; of one file alone where its number is given.
[[nodiscard]] inline std::vector<PlacedTensor> parts_in_order(std::span<const TensorInfo> tensors,
                                                              std::optional<std::uint32_t> source = {}) {
  std::vector<PlacedTensor> parts;
  for (const TensorInfo& tensor : tensors) {
    if (source && tensor.source != *source) continue;
    for (std::uint32_t i = 0; i < tensor.parts && !tensor.empty(); ++i)
      parts.push_back({tensor.offset + i * tensor.stride, &tensor, i});
  }
  std::sort(parts.data(), parts.data() + parts.size(), [](const PlacedTensor& a, const PlacedTensor& b) {
    if (a.tensor->source != b.tensor->source) return a.tensor->source < b.tensor->source;
    return a.offset != b.offset ? a.offset < b.offset : a.tensor < b.tensor;
  });
  return parts;
}

}  // namespace mica::gguf
