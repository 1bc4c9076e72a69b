// SPDX-License-Identifier: Apache-2.0
//
// Turns a planned tensor into the bytes of its format, some rows at a time, so that memory does not grow with
// the tensor. Stored rows go through the order of rows and columns, the transposition, the scales of
// eight-bit floats and the function of the change.
#pragma once

#include "mica_tools/convert/tensor_plan.hpp"
#include "mica_tools/write/gguf_writer.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mica::convert {

/// Rows of one tensor. Not thread-safe: it has a buffer.
class StoredRows {
 public:
  /// The plan outlives this object.
  explicit StoredRows(const TensorPlan& plan)
      : plan_(plan), stored_row_(static_cast<std::size_t>(source_width())) {}

  /// Rows of each matrix, padding included.
  [[nodiscard]] std::uint64_t rows() const noexcept {
    return plan_.dims.size() == 1 ? plan_.width() : plan_.dims[1];
  }
  /// Values of a row; 1 for a vector.
  [[nodiscard]] std::uint64_t width() const noexcept { return plan_.dims.size() == 1 ? 1 : plan_.width(); }

  /// Reads one row of one matrix. Requires to.size() == width().
  void read(std::uint64_t matrix, std::uint64_t row, std::span<float> to) {
    const StoredMatrices& m = plan_.stored;
    const std::uint64_t source_row = plan_.rows.empty() ? row : plan_.rows[static_cast<std::size_t>(row)];
    if (source_row >= source_rows()) return std::fill(to.begin(), to.end(), 0.0F);  // padding
    const auto part = static_cast<std::size_t>(matrix / m.per_part);
    gather(part, matrix % m.per_part, source_row);
    if (plan_.columns.empty()) {
      std::copy(stored_row_.begin(), stored_row_.end(), to.begin());
    } else {
      for (std::size_t i = 0; i < to.size(); ++i) to[i] = stored_row_[plan_.columns[i]];
    }
    apply(plan_.change.function, to);
  }

 private:
  [[nodiscard]] std::uint64_t source_rows() const noexcept {
    return plan_.change.transposed ? plan_.stored.columns : plan_.stored.rows;
  }
  [[nodiscard]] std::uint64_t source_width() const noexcept {
    return plan_.change.transposed ? plan_.stored.rows : plan_.stored.columns;
  }

  void gather(std::size_t part, std::uint64_t matrix, std::uint64_t row) {
    const StoredMatrices& m = plan_.stored;
    const Checkpoint::Entry& entry = m.parts[part];
    const std::size_t element = info(entry.tensor->dtype).bytes;
    const bool transposed = plan_.change.transposed;
    const std::uint64_t first = matrix * m.rows * m.columns + (transposed ? row : row * m.columns);
    to_floats(entry.tensor->dtype, entry.bytes().data() + static_cast<std::size_t>(first) * element,
              stored_row_.size(), transposed ? static_cast<std::size_t>(m.columns) : 1, stored_row_.data());
    if (!m.scales.empty() && m.scales[part]) scale(*m.scales[part], row);
  }

  /// Multiplies a row by the scale of each of its blocks; the blocks are equal parts of the matrix, but the
  /// last.
  void scale(const Checkpoint::Entry& scales, std::uint64_t row) {
    const auto [block_rows, block_columns, across] = scale_grid(*scales.tensor);
    const std::size_t element = info(scales.tensor->dtype).bytes;
    const std::uint64_t first = row / block_rows * across;
    for (std::size_t i = 0; i < stored_row_.size(); ++i) {
      float factor = 0;
      const auto at = static_cast<std::size_t>(first + i / block_columns);
      to_floats(scales.tensor->dtype, scales.bytes().data() + at * element, 1, 1, &factor);
      stored_row_[i] *= factor;
    }
  }

  struct Grid {
    std::uint64_t block_rows, block_columns, across;
  };
  [[nodiscard]] Grid scale_grid(const Safetensor& scales) const noexcept {
    const std::uint64_t down = scales.shape.empty() ? 1 : scales.shape[0];
    const std::uint64_t across = scales.shape.size() < 2 ? 1 : scales.shape[1];
    return {block(plan_.stored.rows, down), block(plan_.stored.columns, across), across};
  }
  /// The block size for n elements in `parts` parts: one block, equal blocks, or the published 128.
  [[nodiscard]] static std::uint64_t block(std::uint64_t n, std::uint64_t parts) noexcept {
    return n % parts == 0 && (parts == 1 || parts == n) ? n / parts : 128;
  }

  const TensorPlan& plan_;
  std::vector<float> stored_row_;
};

namespace detail {

inline constexpr std::uint64_t floats_at_once = std::uint64_t{1} << 20;

/// Collects floats and hands on whole rows of the format.
class EncodedSink {
 public:
  EncodedSink(const TensorPlan& plan, const gguf::Sink& sink) : plan_(plan), sink_(sink) {}

  void add(std::span<const float> values) {
    values_.insert(values_.end(), values.begin(), values.end());
    if (values_.size() >= floats_at_once && values_.size() % plan_.width() == 0) flush();
  }
  void flush() {
    if (values_.empty()) return;
    check_finite();
    const auto width = static_cast<std::size_t>(plan_.width());
    bytes_.resize(values_.size() / width * format::info(plan_.format).row_bytes(width));
    format::encode_rows(plan_.format, values_, width, {}, bytes_);
    sink_(bytes_);
    written_ += values_.size();
    values_.clear();
  }

 private:
  void check_finite() const {
    const auto wrong =
        std::find_if(values_.begin(), values_.end(), [](float x) { return !std::isfinite(x); });
    if (wrong == values_.end()) return;
    const std::uint64_t at = written_ + static_cast<std::uint64_t>(wrong - values_.begin());
    raise(ErrorCode::file, plan_.stored.parts.front().file->path(), ": tensor '", escaped(plan_.source),
          "' has a number that is not finite, in row ", at / plan_.width(), " of '", plan_.name,
          "' (counted from 0), so logits would not be finite either; compare the checksum of the checkpoint");
  }

  const TensorPlan& plan_;
  const gguf::Sink& sink_;
  std::uint64_t written_ = 0;  // values
  std::vector<float> values_;
  std::vector<std::byte> bytes_;
};

inline void write_stored(const TensorPlan& plan, const gguf::Sink& sink) {
  StoredRows rows(plan);
  EncodedSink out(plan, sink);
  std::vector<float> row(static_cast<std::size_t>(rows.width()));
  const std::uint64_t matrices = plan.elements() / (rows.rows() * rows.width());
  for (std::uint64_t m = 0; m < matrices; ++m) {
    for (std::uint64_t r = 0; r < rows.rows(); ++r) {
      rows.read(m, r, row);
      out.add(row);
    }
  }
  out.flush();
}

/// The checkpoint has 16 bytes of two adjacent values each, the first in the low half; the file wants value i
/// beside i + 16, behind the scale.
inline void repack_mxfp4(const std::byte* from, std::byte scale, std::byte* to) noexcept {
  const auto value = [from](std::size_t i) { return (from[i / 2] >> (i % 2 * 4)) & std::byte{15}; };
  *to++ = scale;
  for (std::size_t i = 0; i < 16; ++i) *to++ = value(i) | value(i + 16) << 4;
}

inline void write_blocks(const TensorPlan& plan, const gguf::Sink& sink) {
  const StoredMatrices& m = plan.stored;
  const auto blocks = static_cast<std::size_t>(m.columns);  // of a row
  const std::byte* const codes = m.parts.front().bytes().data();
  const std::byte* const scales = m.scales.front()->bytes().data();
  std::vector<std::byte> row(blocks * 17);
  for (std::uint64_t e = 0; e < m.per_part; ++e) {
    for (std::uint64_t r = 0; r < plan.dims[1]; ++r) {
      const std::uint64_t source = plan.rows.empty() ? r : plan.rows[static_cast<std::size_t>(r)];
      const auto first = static_cast<std::size_t>((e * m.rows + source) * m.columns);
      for (std::size_t b = 0; b < blocks; ++b)
        repack_mxfp4(codes + (first + b) * 16, scales[first + b], row.data() + b * 17);
      sink(row);
    }
  }
}

}  // namespace detail

/// Hands over all bytes of the tensor. Raises ErrorCode::file for a stored number that is not finite, and what
/// format::encode_rows and the sink raise. Limit: blocks (MXFP4) are not checked.
/// Cost: one pass over the stored numbers; memory for about a million floats and one row.
inline void write_tensor(const TensorPlan& plan, const gguf::Sink& sink) {
  switch (plan.origin) {
    case Origin::stored:
      return detail::write_stored(plan, sink);
    case Origin::blocks:
      return detail::write_blocks(plan, sink);
    case Origin::computed:
      return sink(std::as_bytes(std::span(plan.computed)));
  }
}

}  // namespace mica::convert
