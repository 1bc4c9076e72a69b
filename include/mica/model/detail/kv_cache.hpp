// SPDX-License-Identifier: Apache-2.0
//
// The cache of one sequence: keys and values, the state of recurrent layers, and the number of tokens in
// them.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/kv/concept.hpp"
#include "mica/kv/recurrent_state.hpp"
#include "mica/kv/resident_tiles.hpp"

#include <cstddef>
#include <vector>

namespace mica {

/// The cache of one sequence, and the number of its tokens.
template <class Storage>
struct KvCache {
  Storage storage;
  kv::RecurrentState<typename Storage::Allocator> state;
  kv::ResidentTiles<typename Storage::Allocator> resident;  // of the layers whose room is bounded
  std::vector<kv::LayerShape> layers = {};                  // of the storage
  std::size_t tokens = 0;
  std::vector<std::size_t> lost = {};  // by layer: tiles before it were not in the file that it came from

  /// Removes all tokens from `count` on; memory may be freed. Returns the number of remaining tokens:
  /// `count`, or fewer where a recurrent state was restored from a checkpoint, or a window has lost tokens
  /// that the next one would see, or tokens were evicted; the tokens in between must be run again.
  std::size_t rewind(std::size_t count) noexcept {
    MICA_ASSERT(count <= tokens);
    return count == tokens ? count : restore(count);
  }

  /// The same for a state that has seen more than `tokens`.
  std::size_t restore(std::size_t count) noexcept {
    tokens = restore_state(resident.rewind_position(count));
    if (resident.rewind_position(tokens) < tokens || !can_continue()) tokens = restore_state(0);
    resident.rewind(tokens);
    storage.shrink(tokens);
    if (tokens == 0) lost.clear();
    return tokens;
  }

  /// Begins this empty cache with the first `count` tokens of another one of the model, which has at least as
  /// many; in the same memory, where the storage shares. Returns the number of tokens: fewer after a
  /// recurrent state's last checkpoint, 0 where the storage does not share, memory was refused, the other's
  /// windows are past them, or it has evicted tokens.
  std::size_t adopt([[maybe_unused]] const KvCache& other, [[maybe_unused]] std::size_t count) noexcept {
    MICA_ASSERT(tokens == 0 && count <= other.tokens);
    if constexpr (SharingStorage<Storage>) {
      count = other.resident.evicted() != 0
                  ? 0
                  : state.adopt(other.state, other.tokens, other.resident.rewind_position(count));
      if (other.resident.rewind_position(count) < count) count = 0;
      tokens = count == 0 ? 0 : storage.adopt(other.storage, count);
      lost = other.lost;
      if (!can_continue()) tokens = 0;
      if (tokens != 0) resident.adopt(other.resident, tokens);
      if (tokens == 0) restore(0);
    }
    return tokens;
  }

  /// Frees memory that no token uses.
  void trim() noexcept { storage.shrink(tokens); }

  /// Parks keys and values until the next step, where the storage can; returns whether it did.
  bool park() noexcept {
    if constexpr (ParkingStorage<Storage>) return storage.park();
    return false;
  }

  /// Whether all tokens that the next one can see are resident.
  [[nodiscard]] bool can_continue() const noexcept {
    for (std::size_t layer = 0; layer < lost.size(); ++layer) {
      if (lost[layer] * format::tile_tokens > layers[layer].first_seen(tokens)) return false;
    }
    return kv::can_continue(storage, layers, tokens);
  }

 private:
  std::size_t restore_state(std::size_t count) noexcept {
    return state.size() == 0 ? count : state.restore(count);
  }
};

}  // namespace mica
