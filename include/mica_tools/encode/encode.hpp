// SPDX-License-Identifier: Apache-2.0
//
// Writing rows of weights: by type, or by a format's number at run time. The formats are those of
// format::Encodable; how each of them searches for a block stands in format/encode/. Threads, tensors and
// files are the caller's business: rows do not depend on each other.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/format/encode/encoder.hpp"
#include "mica/format/encode/iq4_nl.hpp"
#include "mica/format/encode/q4_0.hpp"
#include "mica/format/encode/q4_1.hpp"
#include "mica/format/encode/q5_0.hpp"
#include "mica/format/encode/q5_1.hpp"
#include "mica/format/lists.hpp"
#include "mica_tools/encode/float.hpp"
#include "mica_tools/encode/iq4_xs.hpp"
#include "mica_tools/encode/mxfp4.hpp"
#include "mica_tools/encode/nf4.hpp"
#include "mica_tools/encode/q1_0.hpp"
#include "mica_tools/encode/q2_0.hpp"
#include "mica_tools/encode/q2_k.hpp"
#include "mica_tools/encode/q3_k.hpp"
#include "mica_tools/encode/q4_k.hpp"
#include "mica_tools/encode/q5_k.hpp"
#include "mica_tools/encode/q6_k.hpp"
#include "mica_tools/encode/q8_0.hpp"
#include "mica_tools/encode/row_weights.hpp"
#include "mica_tools/encode/tq1_0.hpp"
#include "mica_tools/encode/tq2_0.hpp"

#include <cstring>
#include <span>

namespace mica::format {

/// Writes one row in format F: row.size() / F::block_size blocks.
/// The row is whole blocks; `importance` is empty or has a number per column, larger where an error hurts
/// more (an importance matrix: mean squares of the activations).
/// Every block decodes to finite numbers when the row is finite.
template <class F>
void encode_row(std::span<const float> row, std::span<const float> importance,
                typename F::Block* blocks) noexcept {
  MICA_ASSERT(row.size() % F::block_size == 0);
  MICA_ASSERT(importance.empty() || importance.size() == row.size());
  const RowWeights all(importance);
  float weights[F::block_size];
  for (std::size_t first = 0; first < row.size(); first += F::block_size) {
    all.fill(first, F::block_size, weights);
    Encoder<F>::encode(row.data() + first, weights, blocks[first / F::block_size]);
  }
}

/// Whether encode_rows knows the format.
[[nodiscard]] inline bool encodable(Id id) noexcept {
  return visit_id<Encodable>(id, [](auto) {});
}

/// Bytes of a row of `width` values; the width is whole blocks.
[[nodiscard]] constexpr std::size_t row_bytes(Id id, std::size_t width) noexcept {
  return width / info(id).block_size * info(id).block_bytes;
}

/// Writes rows of `width` values in the format with this number, one after the other; `out` needs no
/// alignment.
/// `importance` is empty or has `width` numbers, which hold for every row.
/// Raises unsupported for a format that is not in Encodable, and usage for sizes that do not fit each other.
inline void encode_rows(Id id, std::span<const float> values, std::size_t width,
                        std::span<const float> importance, std::span<std::byte> out) {
  MICA_CHECK(encodable(id), unsupported, "cannot write ", name(id),
             "; formats that can be written: ", names<Encodable>());
  MICA_CHECK(width != 0 && width % info(id).block_size == 0, usage, "a row of ", width,
             " values is not whole blocks of ", name(id), ", which have ", info(id).block_size);
  MICA_CHECK(values.size() % width == 0, usage, values.size(), " values are not whole rows of ", width);
  MICA_CHECK(importance.empty() || importance.size() == width, usage, "importance has ", importance.size(),
             " numbers for rows of ", width);
  const std::size_t bytes = values.size() / width * row_bytes(id, width);
  MICA_CHECK(out.size() == bytes, usage, "room for ", out.size(), " bytes, but the rows take ", bytes);
  visit_id<Encodable>(id, [&](auto type) {
    using F = typename decltype(type)::type;
    std::byte* next = out.data();
    const RowWeights all(importance);
    float weights[F::block_size];
    for (std::size_t at = 0; at < values.size(); at += F::block_size, next += sizeof(typename F::Block)) {
      typename F::Block block;
      all.fill(at % width, F::block_size, weights);
      Encoder<F>::encode(values.data() + at, weights, block);
      std::memcpy(next, &block, sizeof(block));
    }
  });
}

}  // namespace mica::format
