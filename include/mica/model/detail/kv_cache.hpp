// SPDX-License-Identifier: Apache-2.0
//
// The cache of one sequence: keys and values, the state of recurrent layers, and the number of tokens. These
// three always change together, so growth, rewind, eviction and snapshots of a sequence are all here.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/kv/concept.hpp"
#include "mica/kv/recurrent_state.hpp"
#include "mica/kv/resident_tiles.hpp"
#include "mica/kv/snapshot_reader.hpp"
#include "mica/kv/snapshot_writer.hpp"
#include "mica/model/sequence_step.hpp"

#include <algorithm>
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

  /// Evicts tokens until the next `count` fit, or as many as fit at a time; returns how many.
  template <Eviction Policy>
  std::size_t make_room(const Policy& policy, std::size_t count) noexcept {
    const std::size_t now = std::min(count, resident.capacity(tokens));
    resident.evict_for(policy, tokens, now);
    return now;
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

  // Files (kv/snapshot.hpp). The Transformer checks that one is of its model. These raise what readers and
  // writers raise.

  /// Completes the description of an empty cache. A cache with evicted tokens, or with attention scores, is
  /// saved as its tokens alone, which are run again.
  void describe(kv::SnapshotInfo& info) const {
    info.cached = resident.evicted() != 0 || resident.needs_scores() ? 0 : tokens;
    for (std::size_t l = 0; l < info.layers.size(); ++l) {
      info.layers[l].first_tile = std::max(storage.first_tile(l), lost.empty() ? 0 : lost[l]);
    }
    for (const std::size_t at : state.copies()) info.copies.push_back(at);
  }
  /// Writes states and tiles. out: a SnapshotWriter, or that of several ranks (shared_snapshot.hpp).
  /// clear(layer, tile, slot): slots of a tile of the layer, from this one on, become zeros.
  template <class Out, class Clear>
  void save(Out& out, Clear&& clear) {
    if constexpr (ParkingStorage<Storage>) {
      MICA_CHECK(storage.reserve(tokens), budget,
                 "no memory to bring the keys and values back that are to be saved");
    }
    if (state.size() != 0) {
      out.write_state(state.span());
      for (const std::size_t at : state.copies()) out.write_state(state.copy(at));
    }
    for (std::size_t layer = 0; layer < layers.size(); ++layer) {
      if constexpr (SpillingStorage<Storage>) {
        MICA_CHECK(tokens == 0 || storage.fetch(layer), failed, "keys and values of cache layer ", layer,
                   " could not be read back from the spill file");
      }
      for (std::size_t page = 0; page < out.layout().pages(); ++page) {
        const Tiles tiles = out.layout().tiles(layer, page);
        if (!tiles.empty()) save_page(out, layer, tiles, clear);
      }
    }
  }
  /// Loads up to `count` tokens into this empty cache: fewer, down to none, where the state has no copy there
  /// or a window has lost tokens that are seen next; none too where they exceed the capacity, or the cache
  /// needs attention scores. no_memory: the storage has no memory, and the cache is empty.
  template <class In>
  [[nodiscard]] model::StepStatus load(const In& in, std::size_t count) {
    MICA_ASSERT(tokens == 0 && count <= in.info().cached);
    lost.clear();
    if (count == 0 || !resident.begin(count)) {
      restore(0);
      return model::StepStatus::ok;
    }
    for (const auto& layer : in.info().layers) lost.push_back(static_cast<std::size_t>(layer.first_tile));
    try {
      tokens = load_state(in, count);
      resident.rewind(tokens);
      if (!can_continue()) tokens = 0;
      const bool room = tokens == 0 || load_tiles(in);
      if (tokens == 0 || !room) restore(0);
      return room ? model::StepStatus::ok : model::StepStatus::no_memory;
    } catch (...) {
      restore(0);
      throw;
    }
  }

 private:
  using Tiles = kv::SnapshotLayout::Tiles;

  std::size_t restore_state(std::size_t count) noexcept {
    return state.size() == 0 ? count : state.restore(count);
  }
  template <class Out, class Clear>
  void save_page(Out& out, std::size_t layer, Tiles tiles, Clear&& clear) {
    const kv::LayerShape& shape = layers[layer];
    const std::size_t full = std::min(tiles.end, tokens / format::tile_tokens);
    for (std::size_t head = 0; head < shape.kv_heads; ++head) {
      for (std::size_t tile = tiles.first; tile < full;) {
        const kv::Run run = storage.run(layer, head, tile);
        const std::size_t n = std::min(run.tiles, full - tile);
        out.write({run.data, n * shape.tile_bytes});
        tile += n;
      }
      if (full == tiles.end) continue;
      const std::byte* const last = storage.run(layer, head, full).data;
      std::vector<std::byte> copy(last, last + shape.tile_bytes);
      const std::span tile(copy.data(), copy.size());
      clear(layer, tile, tokens % format::tile_tokens);
      out.write(tile);
    }
    out.end_block();
  }
  /// The state after `count` tokens, or after fewer; answers after how many.
  template <class In>
  [[nodiscard]] std::size_t load_state(const In& in, std::size_t count) {
    if (state.size() == 0) return count;
    const auto& copies = in.info().copies;
    const auto wanted = static_cast<std::size_t>(
        std::upper_bound(copies.begin(), copies.end(), std::uint64_t{count}) - copies.begin());
    for (std::size_t i = wanted - std::min(wanted, state.checkpoints()); i < wanted; ++i) {
      in.read_state(i + 1, state.make_copy(static_cast<std::size_t>(copies[i])));
    }
    if (count < in.info().cached) return state.restore(count);
    in.read_state(0, state.span());
    return count;
  }
  /// Page by page for all layers, so that a storage which cannot hold all tiles passes on what it has.
  template <class In>
  [[nodiscard]] bool load_tiles(const In& in) {
    for (std::size_t page = 0; page * kv::SnapshotLayout::page_tokens < tokens; ++page) {
      if (!in.everywhere(storage.reserve(std::min(tokens, (page + 1) * kv::SnapshotLayout::page_tokens))))
        return false;
      for (std::size_t layer = 0; layer < layers.size(); ++layer) load_page(in, layer, page);
    }
    return true;
  }
  /// The tiles that the storage keeps; those behind the last token, or before a window, are dropped.
  template <class In>
  void load_page(const In& in, std::size_t layer, std::size_t page) {
    const kv::LayerShape& shape = layers[layer];
    const Tiles tiles = in.layout().tiles(layer, page);
    const std::size_t first = std::max(storage.first_tile(layer), tiles.first);
    const std::size_t end = std::min(tiles.end, ceil_div(tokens, format::tile_tokens));
    if (tiles.empty() || first >= end) return;
    auto block = in.page(layer, page);
    const auto drop = [&](std::size_t n) {
      std::vector<std::byte> tile(n == 0 ? 0 : shape.tile_bytes);
      for (; n > 0; --n) block.read(tile);
    };
    for (std::size_t head = 0; head < shape.kv_heads; ++head) {
      drop(first - tiles.first);
      for (std::size_t tile = first; tile < end;) {
        const kv::Run run = storage.run(layer, head, tile);
        const std::size_t n = std::min(run.tiles, end - tile);
        block.read({run.data, n * shape.tile_bytes});
        tile += n;
      }
      drop(tiles.end - end);
    }
    block.check();
  }
};

}  // namespace mica
