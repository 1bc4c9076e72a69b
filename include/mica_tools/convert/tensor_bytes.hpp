// SPDX-License-Identifier: Apache-2.0
//
// Turns a planned tensor into the bytes of its format, some rows at a time, so that memory does not grow with
// the tensor.
#pragma once

#include "mica_tools/convert/stored_rows.hpp"
#include "mica_tools/write/gguf_writer.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace mica::convert {

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
    const auto width = static_cast<std::size_t>(plan_.width());
    bytes_.resize(values_.size() / width * format::info(plan_.format).row_bytes(width));
    format::encode_rows(plan_.format, values_, width, {}, bytes_);
    sink_(bytes_);
    values_.clear();
  }

 private:
  const TensorPlan& plan_;
  const gguf::Sink& sink_;
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

/// Hands over all bytes of the tensor. Raises what format::encode_rows and the sink raise.
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
