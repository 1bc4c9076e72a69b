// SPDX-License-Identifier: Apache-2.0
//
// Attention scores of tiles, for eviction policies that need them. While a query attends chunk by chunk, the
// sums of a chunk are relative to its largest score; the scores follow after all chunks:
//
//   | e of tile 0 | tile 1 | ... | tile 15 | tile 16 | ... |     m of chunk 0 | chunk 1 | ...
//
//   share of tile i = e[i] exp(m[i / 16] - M) / sum of the same over all tiles,  M = max m
#pragma once

#include "mica/base/bits.hpp"
#include "mica/base/matrix_view.hpp"
#include "mica/exec/concept.hpp"
#include "mica/kernel/activation.hpp"
#include "mica/kernel/attention.hpp"

#include <algorithm>
#include <cstddef>
#include <span>

namespace mica::block {

/// The attention scores of one query and one head. Owns nothing.
class QueryScores {
 public:
  /// Numbers for `tiles` tiles.
  [[nodiscard]] static constexpr std::size_t width(std::size_t tiles) noexcept {
    return tiles + ceil_div(tiles, kernel::chunk_tiles);
  }

  /// row: (width(tiles))
  explicit QueryScores(std::span<float> row) noexcept
      : e_(row.first(row.size() * kernel::chunk_tiles / (kernel::chunk_tiles + 1))),
        m_(row.subspan(e_.size())) {}

  /// A chunk: p[j] = exp(score - max) of the tokens that are seen.
  void note(std::size_t chunk, kernel::Visible visible, std::span<const float> p, float max) const noexcept {
    const std::size_t first = chunk * kernel::chunk_tiles;
    for (std::size_t i = 0; i < kernel::chunk_tiles && first + i < e_.size(); ++i) {
      const std::size_t begin = std::max<std::size_t>(i * format::tile_tokens, visible.first);
      const std::size_t end = std::min<std::size_t>((i + 1) * format::tile_tokens, visible.last);
      float sum = 0;
      for (std::size_t j = begin; j < end; ++j) sum += p[j];
      e_[first + i] = sum;
    }
    m_[chunk] = max;
  }

  /// Adds the scores of the first tiles, all that the query saw, (tiles). The notes are overwritten.
  void add_tile_scores(std::span<float> tile_scores) const noexcept {
    const auto m = m_.first(ceil_div(tile_scores.size(), kernel::chunk_tiles));
    const float max_value = *std::max_element(m.begin(), m.end());
    for (float& x : m) x = kernel::exp(x - max_value);
    float sum = 0;
    for (std::size_t i = 0; i < tile_scores.size(); ++i) sum += e_[i] * m[i / kernel::chunk_tiles];
    for (std::size_t i = 0; i < tile_scores.size(); ++i)
      tile_scores[i] += e_[i] * m[i / kernel::chunk_tiles] / sum;
  }

 private:
  std::span<float> e_;  // (tiles)
  std::span<float> m_;  // (chunks)
};

/// Adds the scores of the heads of each token, head by head. looks: (n * heads, width); shares(token): of the
/// tiles that it saw.
template <Executor E, class TileScores>
void add_tile_scores(E& executor, MatrixView<float> query_scores, std::size_t heads,
                     TileScores&& tile_scores) noexcept {
  executor.run(query_scores.rows() / heads, [&](std::size_t token, std::size_t) noexcept {
    for (std::size_t head = 0; head < heads; ++head) {
      QueryScores(query_scores[token * heads + head]).add_tile_scores(tile_scores(token));
    }
  });
}

}  // namespace mica::block
