// SPDX-License-Identifier: Apache-2.0
//
// The resident tiles of a cache with limited capacity, and their places. Places [0, size) of the table are
// used, in the order of positions; the places after them are free, and the next tile takes the first of
// these:
//
//   tiles    0 | 1 | 2 | 3 | 8 | 9 |   |   |        numbers: position / 16
//   places   0 | 1 | 2 | 3 | 6 | 7 | 4 | 5 |        tiles 4 to 7 were evicted; the storage's own numbers
//
// If the policy needs scores, the attention scores of each tile are here too: a row for each of the last 64
// tokens. At each border, a position that is a multiple of 64, the rows are summed up. The sums of earlier
// borders are kept until the first eviction, because a rewind needs them.
#pragma once

#include "mica/alloc/buffer.hpp"
#include "mica/base/assert.hpp"
#include "mica/base/bits.hpp"
#include "mica/budget/account.hpp"
#include "mica/kv/eviction.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

namespace mica::kv {

/// Of one sequence. All memory is taken when it is made. One thread at a time.
template <Allocator A>
class ResidentTiles {
 public:
  /// capacity: the maximum of resident tokens, a multiple of 64; 0: all, and nothing is booked. Raises
  /// ErrorCode::budget when the allocator refuses.
  ResidentTiles(A allocator, std::size_t capacity, bool needs_scores)
      : tiles_(take<std::uint32_t>(allocator, capacity / format::tile_tokens)),
        places_(take<std::uint32_t>(allocator, tiles_.size())),
        rows_(take<float>(allocator, needs_scores ? eviction_step * tiles_.size() : 0)),
        sums_(take<float>(allocator, needs_scores ? (capacity / eviction_step + 1) * tiles_.size() : 0)),
        max_tiles_(tiles_.span().size()) {
    rewind(0);
  }

  [[nodiscard]] bool bounded() const noexcept { return max_tiles_ != 0; }      // capacity is not 0
  [[nodiscard]] bool needs_scores() const noexcept { return !rows_.empty(); }  // of attention
  /// Tokens that were evicted.
  [[nodiscard]] std::size_t evicted() const noexcept { return evicted_ * format::tile_tokens; }
  /// The places of resident tiles, in the order of positions.
  [[nodiscard]] std::span<const std::uint32_t> places() const noexcept { return places_.span().first(size_); }
  /// Their numbers.
  [[nodiscard]] std::span<const std::uint32_t> tiles() const noexcept { return tiles_.span().first(size_); }
  /// Attention scores of the token at `pos` for each tile, (places().size()); zeros before its step.
  [[nodiscard]] std::span<float> scores(std::size_t pos) noexcept {
    return rows_.span().subspan(pos % eviction_step * max_tiles_, size_);
  }

  /// Tokens that a step at `pos` may have.
  [[nodiscard]] std::size_t capacity(std::size_t pos) const noexcept {
    if (!bounded()) return std::numeric_limits<std::size_t>::max();
    const std::size_t free = max_tiles_ * format::tile_tokens - (pos - evicted());
    return needs_scores() || free == 0 ? eviction_step - pos % eviction_step : free;
  }
  /// Takes places for `count` tokens at `pos`, at most capacity(pos). When no place is free, 64 tokens are
  /// evicted first; the policy chooses their tiles. Memory is not freed: the next tiles overwrite these places.
  template <Eviction E>
  void evict_for(const E& policy, std::size_t pos, std::size_t count) noexcept {
    if (!bounded()) return;
    MICA_ASSERT(count <= capacity(pos));
    if (needs_scores() && pos % eviction_step == 0 && pos > summed_) sum_up(policy.decay(), pos);
    if (pos - evicted() == max_tiles_ * format::tile_tokens) {
      for (std::size_t i = 0; i < eviction_step / format::tile_tokens; ++i) {
        EvictionView resident{tiles()};
        if (needs_scores()) resident.scores = sums(pos).first(size_);
        evict(std::min(policy.choose(resident), size_ - 1), pos);
      }
    }
    for (const std::size_t end = ceil_div(pos + count, format::tile_tokens) - evicted_; size_ < end;
         ++size_) {
      tiles_[size_] = static_cast<std::uint32_t>(size_ + evicted_);
    }
    for (std::size_t t = pos; needs_scores() && t < pos + count; ++t) {
      std::fill_n(rows_.data() + t % eviction_step * max_tiles_, max_tiles_, 0.0f);
    }
  }

  /// The tokens of `count` that a rewind can keep. 0: none, all must be run again.
  [[nodiscard]] std::size_t rewind_position(std::size_t count) const noexcept {
    if (count < evicted_at_) return 0;
    return needs_scores() && count < summed_ ? count / eviction_step * eviction_step : count;
  }
  /// Removes tokens from `count` on, which is a rewind_position().
  void rewind(std::size_t count) noexcept {
    if (!bounded()) return;
    if (count == 0) {
      evicted_ = evicted_at_ = 0;
      std::iota(places_.span().begin(), places_.span().end(), std::uint32_t{0});
      std::fill_n(sums_.data(), needs_scores() ? max_tiles_ : 0, 0.0f);
    }
    size_ = ceil_div(count, format::tile_tokens) - evicted_;
    summed_ = std::min(summed_, count / eviction_step * eviction_step);
  }
  /// Empty so far, holds the first `count` tokens; false: some of them would be evicted, or their scores are
  /// not known.
  [[nodiscard]] bool begin(std::size_t count) noexcept {
    if (!bounded()) return true;
    if (needs_scores() || count > max_tiles_ * format::tile_tokens) return false;
    rewind(0);
    std::iota(tiles_.span().begin(), tiles_.span().end(), std::uint32_t{0});
    rewind(count);
    return true;
  }
  /// Becomes another one, empty so far, after `count` tokens, a rewind_position() of it before any of its
  /// tokens were evicted.
  void adopt(const ResidentTiles& other, std::size_t count) noexcept {
    MICA_ASSERT(size_ == 0 && other.evicted_ == 0);
    if (!bounded()) return;
    std::copy_n(other.tiles_.data(), max_tiles_, tiles_.data());
    std::copy_n(other.rows_.data(), rows_.size(), rows_.data());
    std::copy_n(other.sums_.data(), sums_.size(), sums_.data());
    summed_ = other.summed_;
    rewind(count);
  }

 private:
  template <class T>
  [[nodiscard]] static alloc::Buffer<T, A> take(A allocator, std::size_t n) {
    auto buffer = alloc::Buffer<T, A>::make(allocator.book_as(budget::Account::kv), n);
    MICA_CHECK(buffer, budget, "kv: ", n * sizeof(T), " bytes for the table of resident tiles ",
               alloc::refused(allocator, n * sizeof(T)));
    return std::move(*buffer);
  }
  [[nodiscard]] std::size_t borders() const noexcept {
    return max_tiles_ * format::tile_tokens / eviction_step;
  }
  /// Sums up to a border; those after the first eviction share the last place.
  [[nodiscard]] std::span<float> sums(std::size_t pos) noexcept {
    return sums_.span().subspan(std::min(pos / eviction_step, borders()) * max_tiles_, max_tiles_);
  }
  void sum_up(float decay, std::size_t pos) noexcept {
    const std::span<const float> before = sums(pos - eviction_step);
    const std::span<float> now = sums(pos);
    for (std::size_t i = 0; i < max_tiles_; ++i) {
      float sum = 0;
      for (std::size_t t = 0; i < size_ && t < eviction_step; ++t) sum += rows_[t * max_tiles_ + i];
      now[i] = i < size_ ? before[i] * decay + sum : 0;
    }
    summed_ = pos;
  }
  /// Evicts the tile at `index`: its place becomes the last of the free ones.
  void evict(std::size_t index, std::size_t pos) noexcept {
    const auto close = [index](auto span) {
      std::rotate(span.begin() + static_cast<std::ptrdiff_t>(index),
                  span.begin() + static_cast<std::ptrdiff_t>(index) + 1, span.end());
    };
    close(tiles_.span());
    close(places_.span());
    if (needs_scores()) {
      close(sums(pos));
      sums(pos).back() = 0;
    }
    --size_;
    ++evicted_;
    evicted_at_ = pos;
  }

  alloc::Buffer<std::uint32_t, A> tiles_;   // (max_tiles)
  alloc::Buffer<std::uint32_t, A> places_;  // (max_tiles)
  alloc::Buffer<float, A> rows_;            // (64, max_tiles)
  alloc::Buffer<float, A> sums_;            // (borders + 1, max_tiles)
  std::size_t max_tiles_;                   // tiles; 0 in a plan, which holds none
  std::size_t size_ = 0;
  std::size_t evicted_ = 0;     // tiles
  std::size_t evicted_at_ = 0;  // position of the last eviction
  std::size_t summed_ = 0;      // position up to which rows are summed up
};

}  // namespace mica::kv
