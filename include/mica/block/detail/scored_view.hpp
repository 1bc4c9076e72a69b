// SPDX-License-Identifier: Apache-2.0
//
// The views of keys and values for eviction policies: one where some tokens were evicted, and one that also
// sums up the attention scores of tiles, for policies that need them. While a query attends chunk by chunk,
// two things are stored: m, the largest scaled product s of the query and a key of the chunk, and e, for each
// tile of the chunk, the sum of exp(s - m) over its tokens. The attention scores of tiles are computed after
// the last chunk:
//
//   | e of tile 0 | tile 1 | ... | tile 15 | tile 16 | ... |     m of chunk 0 | chunk 1 | ...
//
//   score of tile i = e[i] exp(m[i / 16] - M) / sum of the same over all tiles,  M = max m
#pragma once

#include "mica/block/detail/attend.hpp"
#include "mica/kernel/activation.hpp"
#include "mica/kv/resident_tiles.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
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

/// Some tokens may have been evicted.
template <KvElements E, KvStorage S>
struct EvictedView : KvView<E, S> {
  using Resident = kv::ResidentTiles<typename S::Allocator>;

  using KvView<E, S>::KvView;

  /// The resident tokens are these, in the layer of this view.
  void keep(const Resident& resident) noexcept {
    evicted_ = resident.evicted();
    places_ = resident.places();
    this->pos -= evicted_;
  }
  [[nodiscard]] std::size_t evicted() const noexcept { return evicted_; }
  [[nodiscard]] std::size_t place(std::size_t tile) const noexcept {
    return places_.empty() ? tile : places_[tile];
  }

 private:
  std::size_t evicted_ = 0;
  std::span<const std::uint32_t> places_ = {};  // in the order of positions; empty: their numbers
};

/// Attends to a chunk, and notes the scores of its rows.
template <class Context>
struct ScoredReader : ChunkReader<Context> {
  using Base = ChunkReader<Context>;
  using Base::Base, Base::c, Base::of, Base::rows;

  template <Kernels K>
  kernel::AttentionArgs attend(std::size_t chunk, const TileAddresses& tiles, const TileAddresses& ahead,
                               const AttentionScratch& s,
                               const kernel::AttentionState& result) const noexcept {
    const auto args = Base::template attend<K>(chunk, tiles, ahead, s, result);
    if (!c.kv.scored()) return args;
    const auto& [kv_head, first, last] = of;
    const std::size_t group = c.layer.group();
    for (std::size_t r = 0; r < rows(); ++r) {
      c.kv.query_scores(c, first + r / group, kv_head * group + r % group)
          .note(chunk, args.visible[r], args.p[r], args.max[r]);
    }
    return args;
  }
};

/// And the policy may need the attention scores of tiles.
template <KvElements E, KvStorage S>
struct ScoredView : EvictedView<E, S> {
  using Base = EvictedView<E, S>;
  using typename Base::Resident;

  template <class Context>
  using Reader = ScoredReader<Context>;

  using Base::Base;

  /// Adds the scores of this step to those of `resident`. memory: (tokens of a sequence in a step * heads,
  /// width), which all sequences of a step use in turn.
  void watch(Resident& resident, std::span<float> memory, std::size_t width) noexcept {
    resident_ = &resident;
    memory_ = memory;
    width_ = width;
  }
  [[nodiscard]] bool scored() const noexcept { return !memory_.empty(); }
  template <class Context>
  [[nodiscard]] QueryScores query_scores(const Context& c, std::size_t token,
                                         std::size_t head) const noexcept {
    return QueryScores(memory_.subspan((token * c.layer.heads + head) * width_, width_));
  }

  /// Sequences whose scores are needed attend one after the other.
  template <Kernels K, Executor X, class ContextOf, class Scratch>
  static void attend_all(X& executor, std::size_t sequences, std::size_t tokens, ContextOf&& context,
                         Scratch&& scratch) noexcept {
    if (!context(0).kv.scored())
      return Base::template attend_all<K>(executor, sequences, tokens, context, scratch);
    for (std::size_t i = 0; i < sequences; ++i) {
      const auto c = context(i);
      block::attend<K>(executor, c, scratch);
      c.kv.add_scores(executor, c);
    }
  }

 private:
  /// Adds the scores of all heads of each token to those of the tiles that it saw, head by head.
  template <Executor X, class Context>
  void add_scores(X& executor, const Context& c) const noexcept {
    executor.run(c.q.rows(), [&](std::size_t token, std::size_t) noexcept {
      const std::size_t seen = ceil_div(this->pos + token + 1, format::tile_tokens);
      const auto tiles = resident_->scores(this->evicted() + this->pos + token).first(seen);
      for (std::size_t head = 0; head < c.layer.heads; ++head) {
        query_scores(c, token, head).add_tile_scores(tiles);
      }
    });
  }

  Resident* resident_ = nullptr;
  std::span<float> memory_ = {};
  std::size_t width_ = 0;
};

}  // namespace mica::block
