// SPDX-License-Identifier: Apache-2.0
//
// Saves and loads a cache: tiles by number, for any storage, and the states of recurrent layers.
// kv/snapshot.hpp defines the file; the Transformer checks that it is of this model.
#pragma once

#include "mica/kv/snapshot_reader.hpp"
#include "mica/kv/snapshot_writer.hpp"
#include "mica/model/detail/kv_cache.hpp"
#include "mica/model/step_status.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

namespace mica::model {

/// Completes the description of an empty cache. A cache with evicted tokens, or with attention scores, is
/// saved as its tokens alone, which are run again.
template <class Storage>
void describe(const KvCache<Storage>& cache, kv::SnapshotInfo& info) {
  info.cached = cache.resident.evicted() != 0 || cache.resident.needs_scores() ? 0 : cache.tokens;
  for (std::size_t l = 0; l < info.layers.size(); ++l) {
    const std::size_t lost = cache.lost.empty() ? 0 : cache.lost[l];
    info.layers[l].first_tile = std::max(cache.storage.first_tile(l), lost);
  }
  for (const std::size_t tokens : cache.state.copies()) info.copies.push_back(tokens);
}

/// Reads and writes one cache. Raises what readers and writers raise; not for steps.
template <class Storage>
class CacheFile {
 public:
  explicit CacheFile(KvCache<Storage>& cache) noexcept : cache_(cache) {}

  /// Writes states and tiles. clear(layer, tile, slot): slots of a tile of the layer, from this one on,
  /// become zeros.
  template <class Clear>
  void save(kv::SnapshotWriter& out, Clear&& clear);

  /// Loads up to `count` tokens into an empty cache: fewer, down to none, where the state has no copy there
  /// or a window has lost tokens that are seen next; none too where they exceed the capacity, or the cache
  /// needs attention scores. no_memory: the storage has no memory, and the cache is empty.
  [[nodiscard]] StepStatus load(const kv::SnapshotReader& in, std::size_t count);

 private:
  using Tiles = kv::SnapshotLayout::Tiles;

  template <class Clear>
  void save_page(kv::SnapshotWriter& out, std::size_t layer, Tiles tiles, Clear&& clear);
  [[nodiscard]] std::size_t load_state(const kv::SnapshotReader& in, std::size_t count);
  [[nodiscard]] bool load_tiles(const kv::SnapshotReader& in);
  void load_page(const kv::SnapshotReader& in, std::size_t layer, std::size_t page);

  KvCache<Storage>& cache_;
  std::vector<std::byte> tile_;  // scratch
};

template <class Storage>
template <class Clear>
void CacheFile<Storage>::save(kv::SnapshotWriter& out, Clear&& clear) {
  if constexpr (ParkingStorage<Storage>) {
    MICA_CHECK(cache_.storage.reserve(cache_.tokens), budget,
               "no memory to bring the keys and values back that are to be saved");
  }
  if (cache_.state.size() != 0) {
    out.write_state(cache_.state.span());
    for (const std::size_t tokens : cache_.state.copies()) out.write_state(cache_.state.copy(tokens));
  }
  for (std::size_t layer = 0; layer < cache_.layers.size(); ++layer) {
    if constexpr (SpillingStorage<Storage>) {
      MICA_CHECK(cache_.tokens == 0 || cache_.storage.fetch(layer), failed, "keys and values of cache layer ",
                 layer, " could not be read back from the spill file");
    }
    for (std::size_t page = 0; page < out.layout().pages(); ++page) {
      const Tiles tiles = out.layout().tiles(layer, page);
      if (!tiles.empty()) save_page(out, layer, tiles, clear);
    }
  }
}

template <class Storage>
template <class Clear>
void CacheFile<Storage>::save_page(kv::SnapshotWriter& out, std::size_t layer, Tiles tiles, Clear&& clear) {
  const kv::LayerShape& shape = cache_.layers[layer];
  const std::size_t full = std::min(tiles.end, cache_.tokens / format::tile_tokens);
  for (std::size_t head = 0; head < shape.kv_heads; ++head) {
    for (std::size_t tile = tiles.first; tile < full;) {
      const kv::Run run = cache_.storage.run(layer, head, tile);
      const std::size_t n = std::min(run.tiles, full - tile);
      out.write({run.data, n * shape.tile_bytes});
      tile += n;
    }
    if (full == tiles.end) continue;
    const std::byte* const last = cache_.storage.run(layer, head, full).data;
    tile_.assign(last, last + shape.tile_bytes);
    clear(layer, tile_.data(), cache_.tokens % format::tile_tokens);
    out.write(tile_);
  }
  out.end_block();
}

template <class Storage>
StepStatus CacheFile<Storage>::load(const kv::SnapshotReader& in, std::size_t count) {
  MICA_ASSERT(cache_.tokens == 0 && count <= in.info().cached);
  cache_.lost.clear();
  if (count == 0 || !cache_.resident.begin(count)) {
    cache_.restore(0);
    return StepStatus::ok;
  }
  for (const auto& layer : in.info().layers)
    cache_.lost.push_back(static_cast<std::size_t>(layer.first_tile));
  try {
    cache_.tokens = load_state(in, count);
    cache_.resident.rewind(cache_.tokens);
    if (!cache_.can_continue()) cache_.tokens = 0;
    const bool room = cache_.tokens == 0 || load_tiles(in);
    if (cache_.tokens == 0 || !room) cache_.restore(0);
    return room ? StepStatus::ok : StepStatus::no_memory;
  } catch (...) {
    cache_.restore(0);
    throw;
  }
}

/// The state after `count` tokens, or after fewer; answers after how many.
template <class Storage>
std::size_t CacheFile<Storage>::load_state(const kv::SnapshotReader& in, std::size_t count) {
  auto& state = cache_.state;
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
template <class Storage>
bool CacheFile<Storage>::load_tiles(const kv::SnapshotReader& in) {
  const std::size_t tokens = cache_.tokens;
  for (std::size_t page = 0; page * kv::SnapshotLayout::page_tokens < tokens; ++page) {
    if (!cache_.storage.reserve(std::min(tokens, (page + 1) * kv::SnapshotLayout::page_tokens))) return false;
    for (std::size_t layer = 0; layer < cache_.layers.size(); ++layer) load_page(in, layer, page);
  }
  return true;
}

/// The tiles that the storage keeps; what is behind the last token, or before a window, is read and dropped.
template <class Storage>
void CacheFile<Storage>::load_page(const kv::SnapshotReader& in, std::size_t layer, std::size_t page) {
  const kv::LayerShape& shape = cache_.layers[layer];
  const Tiles tiles = in.layout().tiles(layer, page);
  const std::size_t first = std::max(cache_.storage.first_tile(layer), tiles.first);
  const std::size_t end = std::min(tiles.end, ceil_div(cache_.tokens, format::tile_tokens));
  if (tiles.empty() || first >= end) return;
  auto block = in.page(layer, page);
  const auto drop = [&](std::size_t n) {
    tile_.resize(shape.tile_bytes);
    for (; n > 0; --n) block.read(tile_);
  };
  for (std::size_t head = 0; head < shape.kv_heads; ++head) {
    drop(first - tiles.first);
    for (std::size_t tile = first; tile < end;) {
      const kv::Run run = cache_.storage.run(layer, head, tile);
      const std::size_t n = std::min(run.tiles, end - tile);
      block.read({run.data, n * shape.tile_bytes});
      tile += n;
    }
    drop(tiles.end - end);
  }
  block.check();
}

}  // namespace mica::model
