// SPDX-License-Identifier: Apache-2.0
//
// The passages of an index that are most similar to a query: exact products with all rows. An index of graphs or
// clusters would read fewer of them, and would miss some.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/base/matrix_view.hpp"
#include "mica/block/linear.hpp"
#include "mica/exec/inline.hpp"
#include "mica/kernel/highway.hpp"
#include "mica_tools/search/index_reader.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

namespace mica::search {

/// A passage of an index and its similarity with a query.
struct Match {
  std::size_t passage = 0;  // in the order of the index
  float score = 0;          // the product of both embeddings

  friend bool operator==(const Match&, const Match&) = default;
};

/// The `max` matches with the largest scores, the largest first; of equal scores the passage that comes first.
[[nodiscard]] inline std::vector<Match> best_of(std::span<const float> scores, std::size_t max) {
  std::vector<Match> all;
  all.reserve(scores.size());
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const bool is_number = scores[i] == scores[i];  // rows of a file may be anything
    all.push_back({i, is_number ? scores[i] : -std::numeric_limits<float>::infinity()});
  }
  max = std::min(max, all.size());
  std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(max), all.end(),
                    [](const Match& a, const Match& b) {
                      return a.score != b.score ? a.score > b.score : a.passage < b.passage;
                    });
  all.resize(max);
  return all;
}

/// The product of the query (info().width) with each row, in floats also where rows are of 8 bits: (passages).
/// Raises as IndexReader::for_each_slice(). Cost: one pass over the file.
template <Kernels K = kernel::Highway>
[[nodiscard]] std::vector<float> similarities(const IndexReader& index, std::span<const float> query) {
  MICA_ASSERT(query.size() == index.info().width);
  const std::size_t width = stored_width(index.info());
  std::vector<float> padded(width), scores(index.passages());
  std::copy(query.begin(), query.end(), padded.begin());
  const kernel::Input x{MatrixView<const float>(padded.data(), 1, width), {}};  // (1, width)
  exec::Inline executor;
  index.for_each_slice([&](std::size_t first, std::span<const std::byte> rows) {
    const std::size_t n = rows.size() / row_bytes(index.info());
    const std::array products = {
        block::Product<RowFormats>{.w = RowMatrix(index.info().format, rows.data(), n, width),  // (n, width)
                                   .y = MatrixView<float>(scores.data() + first, 1, n),         // (1, n)
                                   .in_floats = true}};
    block::project<K>(executor, x, products);
  });
  return scores;
}

}  // namespace mica::search
