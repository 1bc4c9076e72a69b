// SPDX-License-Identifier: Apache-2.0
//
// The memory of one sequence by its tokens, from a dry run of the model (Plan::sequence_bytes): keys and
// values, window rings, recurrent states.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/format/concept.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace mica::serve {

/// Immutable.
class SequenceBytes {
 public:
  /// by_tiles: ascending. Raises ErrorCode::usage for none: the plan was not asked for them.
  explicit SequenceBytes(std::vector<std::uint64_t> by_tiles) : by_tiles_(std::move(by_tiles)) {
    MICA_CHECK(!by_tiles_.empty(), usage, "no bytes of a sequence: set plan::Question::sequence_bytes");
  }

  /// Bytes of a sequence that shares nothing.
  [[nodiscard]] std::uint64_t at(std::size_t tokens) const noexcept {
    const std::size_t tiles = (tokens + format::tile_tokens - 1) / format::tile_tokens;
    return by_tiles_[std::min(tiles, by_tiles_.size() - 1)];
  }
  /// Bytes that a sequence will allocate from `now` tokens to `end`, of which the first `shared` have pages
  /// of others. A ring whose pages are shared is written anew, as if the sequence began there.
  [[nodiscard]] std::uint64_t growth(std::size_t now, std::size_t end, std::size_t shared) const noexcept {
    const std::size_t others = shared / format::tile_tokens * format::tile_tokens;
    const std::size_t own_end = std::max(end, others) - others;
    const std::size_t own_now = std::min(std::max(now, others) - others, own_end);
    return at(own_end) - at(own_now);
  }

  /// Tokens that a sequence of `now` tokens may take before it has allocated more than `bytes`, up to the end
  /// of a tile; at most those of the whole context.
  [[nodiscard]] std::size_t tokens_in(std::size_t now, std::uint64_t bytes) const noexcept {
    const std::uint64_t has = at(now);
    const auto end = std::upper_bound(by_tiles_.begin(), by_tiles_.end(), has + std::min(bytes, ~has));
    const std::size_t tiles = static_cast<std::size_t>(end - by_tiles_.begin()) - 1;
    return std::max(tiles * format::tile_tokens, now) - now;
  }

 private:
  std::vector<std::uint64_t> by_tiles_;
};

}  // namespace mica::serve
