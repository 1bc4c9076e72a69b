// SPDX-License-Identifier: Apache-2.0
//
// A cache as a file: its description and its layout. Written by snapshot_writer.hpp, read by
// snapshot_reader.hpp.
//
//   | prelude | description | state, copies | layer 0: 64 tokens, 64 tokens ... | layer 1 ... | checksums |
//   | 48      |             | blocks of 1 MiB | a block each: head 0: tile tile tile tile | head 1 ... |  |
//
// Numbers are little-endian. Every byte is covered by a checksum. The prelude, the description and each block
// have one each, and the last checksum covers the checksums before it.
#pragma once

#include "mica/base/bits.hpp"
#include "mica/base/error.hpp"
#include "mica/base/token_id.hpp"
#include "mica/format/concept.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace mica::kv {

/// The description of a snapshot.
struct SnapshotInfo {
  /// A layer of the storage.
  struct Layer {
    std::uint64_t kv_heads = 0;    // with a tile each for 16 tokens
    std::uint64_t tile_bytes = 0;  // of one head
    std::uint64_t window = 0;      // 0: none
    std::uint64_t first_tile = 0;  // the first that is there

    friend bool operator==(const Layer&, const Layer&) = default;
  };

  // Whose it is
  std::string arch;             // name of the family
  std::uint64_t model = 0;      // gguf::fingerprint
  std::uint64_t positions = 0;  // checksum of the frequencies that rotate keys
  std::string keys, values;     // elements
  // What it holds
  std::vector<TokenId> tokens;        // ids, from position 0 on
  std::uint64_t cached = 0;           // tokens with keys, values and state; the others must be run
  std::vector<Layer> layers;          // of the storage, in its order
  std::uint64_t state_floats = 0;     // of one recurrent state; 0: none
  std::vector<std::uint64_t> copies;  // of the state: after how many tokens
  std::string note;                   // of the program that saves
};

/// The blocks of a snapshot. Offsets count from the first block.
class SnapshotLayout {
 public:
  static constexpr std::size_t page_tokens = 64;                                // in one block
  static constexpr std::size_t page_tiles = page_tokens / format::tile_tokens;  // of each head
  static constexpr std::size_t state_bytes = std::size_t{1} << 20;              // of a state in one block

  struct Block {
    std::size_t index = 0;
    std::uint64_t offset = 0;
    std::size_t bytes = 0;
  };
  /// Tiles [first, end).
  struct Tiles {
    std::size_t first = 0;
    std::size_t end = 0;
    [[nodiscard]] bool empty() const noexcept { return first >= end; }
  };

  SnapshotLayout() = default;  // of no blocks
  /// Requires bytes_of(info) < 2^64 - 1.
  explicit SnapshotLayout(const SnapshotInfo& info)
      : state_bytes_(info.state_floats * sizeof(float)),
        states_(info.state_floats == 0 ? 0 : 1 + info.copies.size()),
        tiles_(ceil_div<std::size_t>(info.cached, format::tile_tokens)),
        blocks_(states_ * parts()),
        bytes_(states_ * state_bytes_) {
    for (const SnapshotInfo::Layer& layer : info.layers) {
      layers_.push_back({layer.kv_heads * layer.tile_bytes, layer.first_tile, blocks_, bytes_});
      const std::size_t resident = tiles_ - std::min<std::size_t>(tiles_, layer.first_tile);
      blocks_ += resident == 0 ? 0 : pages() - layer.first_tile / page_tiles;
      bytes_ += resident * layers_.back().tile_bytes;
    }
  }

  /// The bytes that all blocks take, or 2^64 - 1 where that overflows, and there is no layout.
  [[nodiscard]] static std::uint64_t bytes_of(const SnapshotInfo& info) noexcept {
    static constexpr auto too_many = std::numeric_limits<std::uint64_t>::max();
    const auto times = [](std::uint64_t a, std::uint64_t b) { return checked_mul(a, b).value_or(too_many); };
    const auto plus = [](std::uint64_t a, std::uint64_t b) { return a > too_many - b ? too_many : a + b; };
    std::uint64_t bytes = times(times(info.state_floats, sizeof(float)), 1 + info.copies.size());
    const std::uint64_t tiles = ceil_div<std::uint64_t>(info.cached, format::tile_tokens);
    for (const SnapshotInfo::Layer& layer : info.layers) {
      const std::uint64_t resident = tiles - std::min(tiles, layer.first_tile);
      bytes = plus(bytes, times(resident, times(layer.kv_heads, layer.tile_bytes)));
    }
    return bytes;
  }

  [[nodiscard]] std::size_t blocks() const noexcept { return blocks_; }  // of states, then of layers
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  /// Pages of 64 tokens.
  [[nodiscard]] std::size_t pages() const noexcept { return ceil_div(tiles_, page_tiles); }
  /// Blocks of a state.
  [[nodiscard]] std::size_t parts() const noexcept { return ceil_div(state_bytes_, state_bytes); }

  /// Part of a state: copy 0 is the state itself, copy i that of copies[i - 1].
  [[nodiscard]] Block state(std::size_t copy, std::size_t part) const noexcept {
    const std::size_t begin = part * state_bytes, end = std::min(begin + state_bytes, state_bytes_);
    return {copy * parts() + part, copy * state_bytes_ + begin, end - begin};
  }
  /// The tiles of a page that a layer has.
  [[nodiscard]] Tiles tiles(std::size_t layer, std::size_t page) const noexcept {
    return {std::max(page * page_tiles, layers_[layer].first_tile),
            std::min((page + 1) * page_tiles, tiles_)};
  }
  /// Where they lie, head by head. Requires that there are some.
  [[nodiscard]] Block page(std::size_t layer, std::size_t page) const noexcept {
    const Layer& l = layers_[layer];
    const Tiles resident = tiles(layer, page);
    return {l.first_block + page - l.first_tile / page_tiles,
            l.offset + (resident.first - l.first_tile) * l.tile_bytes,
            (resident.end - resident.first) * l.tile_bytes};
  }
  /// The name of a block, for error texts.
  [[nodiscard]] std::string name(std::size_t block) const {
    if (block < states_ * parts()) {
      const std::size_t copy = block / parts();
      return copy == 0 ? "the recurrent state" : join("copy ", copy, " of the recurrent state");
    }
    std::size_t layer = layers_.size() - 1;
    while (layer > 0 && layers_[layer].first_block > block) --layer;
    const std::size_t page = block - layers_[layer].first_block + layers_[layer].first_tile / page_tiles;
    return join("keys and values of cache layer ", layer, ", tokens ", page * page_tokens, " to ",
                (page + 1) * page_tokens - 1);
  }

 private:
  struct Layer {
    std::size_t tile_bytes;  // of all heads
    std::size_t first_tile;
    std::size_t first_block;
    std::uint64_t offset;
  };

  std::size_t state_bytes_ = 0;
  std::size_t states_ = 0;
  std::size_t tiles_ = 0;  // of a layer that has all
  std::size_t blocks_ = 0;
  std::uint64_t bytes_ = 0;
  std::vector<Layer> layers_;
};

namespace detail {

inline constexpr std::array<char, 8> snapshot_magic = {'m', 'i', 'c', 'a', 'S', 'N', 'A', 'P'};
inline constexpr std::uint32_t snapshot_version = 2;

/// The first bytes of a snapshot.
struct SnapshotPrelude {
  std::array<char, 8> magic = snapshot_magic;
  std::uint32_t version = snapshot_version;
  std::uint32_t zero = 0;
  std::uint64_t description_bytes = 0;
  std::uint64_t file_bytes = 0;
  std::uint64_t description = 0;  // checksum
  std::uint64_t prelude = 0;      // checksum of the bytes before it
};
static_assert(sizeof(SnapshotPrelude) == 48);

}  // namespace detail
}  // namespace mica::kv
