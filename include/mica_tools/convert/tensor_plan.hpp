// SPDX-License-Identifier: Apache-2.0
//
// The plan of one tensor: the source of its numbers, their change, and their type in the file.
#pragma once

#include "mica/format/lists.hpp"
#include "mica_tools/convert/change.hpp"
#include "mica_tools/convert/checkpoint.hpp"
#include "mica_tools/encode/encode.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mica::convert {

/// A stack of stored matrices of one shape. A vector is a matrix with one column, so that orders of rows hold
/// for it too.
struct StoredMatrices {
  std::vector<Checkpoint::Entry> parts;                  // the tensors, one after the other
  std::vector<std::optional<Checkpoint::Entry>> scales;  // of eight-bit floats: for each part, or none
  std::uint64_t per_part = 1;                            // matrices in each
  std::uint64_t rows = 0, columns = 0;                   // of each matrix, as stored
};

/// The origin of a tensor.
enum class Origin : std::uint8_t {
  stored,    // values of the checkpoint
  blocks,    // MXFP4 blocks of the checkpoint, repacked; scales[i] goes with parts[i]
  computed,  // out of the config
};

struct TensorPlan {
  std::string name;                          // in the file
  std::string source;                        // name in the checkpoint, for messages; of a stack the first
  Origin origin = Origin::stored;            // of its values
  StoredMatrices stored;                     // none of a computed tensor
  Change change;                             // of the stored values
  std::vector<std::uint32_t> rows, columns;  // of the change; empty: all, in order
  std::vector<float> computed;               // its values where Origin::computed
  std::vector<std::uint64_t> dims;           // as in GGUF: the first varies fastest
  format::Id format = format::F32::id;       // in the file

  /// Values of a row of the file, of the whole tensor, and bytes of the latter.
  [[nodiscard]] std::uint64_t width() const noexcept { return dims.front(); }
  [[nodiscard]] std::uint64_t elements() const noexcept {
    std::uint64_t n = 1;
    for (const std::uint64_t dim : dims) n *= dim;
    return n;
  }
  [[nodiscard]] std::uint64_t bytes() const noexcept {
    return format::info(format).row_bytes(static_cast<std::size_t>(width())) * (elements() / width());
  }
  /// "2048 x 32000".
  [[nodiscard]] std::string shape() const {
    std::string text;
    for (const std::uint64_t dim : dims) text += join(text.empty() ? "" : " x ", dim);
    return text;
  }
};

}  // namespace mica::convert
