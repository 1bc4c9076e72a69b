// SPDX-License-Identifier: Apache-2.0
//
// The tiles of the cache that the tokens of a task see, by attention chunk, and their form: recent or old.
#pragma once

#include "mica/block/detail/attention_context.hpp"
#include "mica/block/detail/query_scores.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace mica::block {

using TileAddresses = std::array<const std::byte*, kernel::chunk_tiles>;

/// The tiles of a chunk: those that are read as recent ones, and those that are read as old ones.
struct ChunkTiles {
  TileAddresses recent{};
  TileAddresses old{};
};

/// The addresses of a chunk's tiles that hold a token in [begin, end); the others stay null.
template <class Context>
TileAddresses chunk_tiles(const Context& c, std::size_t cache_layer, std::size_t kv_head, std::size_t chunk,
                          std::size_t begin, std::size_t end, std::size_t tile_bytes) noexcept {
  TileAddresses tiles{};
  const std::size_t first = chunk * kernel::chunk_tiles, last = ceil_div(end, format::tile_tokens);
  const std::size_t count = std::min(kernel::chunk_tiles, std::max(last, first) - first);
  std::size_t i = std::max(begin / format::tile_tokens, first) - first;
  while (i < count) {
    const std::size_t place = c.place(first + i);
    const kv::Run run = c.cache.run(cache_layer, kv_head, place);
    for (std::size_t j = 0; j < run.tiles && i < count && c.place(first + i) == place + j; ++j, ++i) {
      tiles[i] = run.data + j * tile_bytes;
    }
  }
  return tiles;
}

/// What a chunk has of tokens [first, last).
[[nodiscard]] inline kernel::Visible visible_part(std::size_t first, std::size_t last,
                                                  std::size_t chunk) noexcept {
  const std::size_t before = chunk * kernel::chunk_tokens;
  const auto within = [before](std::size_t position) {
    return static_cast<std::uint16_t>(position <= before ? 0
                                                         : std::min(position - before, kernel::chunk_tokens));
  };
  return {within(first), within(last)};
}

/// Tokens [first, last) of a step, seen from one KV head.
struct HeadTokens {
  std::size_t kv_head;
  std::size_t first;
  std::size_t last;
};

/// Which form of tokens is meant.
enum class Age { any, recent, old };

/// The attention chunks that the tokens of a task see, and the tiles that are read.
template <class Context>
struct ChunkReader {
  static constexpr bool aging = AgingElements<std::remove_cvref_t<decltype(Context::elements)>>;

  const Context& c;
  HeadTokens of;
  std::size_t begin = c.layer.first_seen(c.pos + of.first);  // positions
  std::size_t end = c.pos + of.last;

  [[nodiscard]] std::size_t first_chunk() const noexcept { return begin / kernel::chunk_tokens; }
  [[nodiscard]] std::size_t end_chunk() const noexcept { return ceil_div(end, kernel::chunk_tokens); }
  [[nodiscard]] std::size_t rows() const noexcept { return (of.last - of.first) * c.layer.group(); }
  [[nodiscard]] ChunkTiles tiles(std::size_t chunk) const noexcept {
    const std::size_t d = c.layer.head_dim, recent = std::max(begin, c.aged(c.pos + of.first));
    ChunkTiles tiles;
    tiles.recent =
        chunk_tiles(c, c.cache_layer, of.kv_head, chunk, recent, end, kv::tile_bytes(c.elements, d));
    if constexpr (aging) {
      tiles.old = chunk_tiles(c, c.old_layer, of.kv_head, chunk, begin, c.aged(end - 1),
                              kv::tile_bytes(c.elements.old(), d));
    }
    return tiles;
  }
  /// The tiles read after a chunk: those of the next one, or the first of the next head where one unit has
  /// all tokens.
  [[nodiscard]] ChunkTiles tiles_after(std::size_t chunk) const noexcept {
    if (chunk + 1 < end_chunk()) return tiles(chunk + 1);
    if (of.kv_head + 1 == c.layer.kv_heads || of.last - of.first < c.q.rows()) return {};
    return ChunkReader{c, {of.kv_head + 1, of.first, of.last}}.tiles(first_chunk());
  }
  /// Whether some token sees old tiles of a chunk.
  [[nodiscard]] bool sees_old(std::size_t chunk) const noexcept {
    return c.aged(end - 1) > std::max(begin, chunk * kernel::chunk_tokens);
  }
  void see(std::size_t chunk, Age age, kernel::Visible* visible) const noexcept {  // (rows)
    for (std::size_t r = 0; r < rows(); ++r) {
      const std::size_t pos = c.pos + of.first + r / c.layer.group();
      const std::size_t first = c.layer.first_seen(pos), border = c.aged(pos);
      visible[r] = visible_part(age == Age::recent ? std::max(first, border) : first,
                                age == Age::old ? std::max(first, border) : pos + 1, chunk);
    }
  }
  /// Copies the queries together.
  void queries(MatrixView<float> q) const noexcept {  // (rows, head_dim)
    const std::size_t group = c.layer.group();
    for (std::size_t r = 0; r < rows(); ++r) {
      std::copy_n(c.query(of.kv_head * group + r % group)[of.first + r / group].data(), c.layer.head_dim,
                  q[r].data());
    }
  }
};

/// Records the attention scores of each row of a chunk.
template <class Context>
void note_scores(const ChunkReader<Context>& reader, std::size_t chunk,
                 const kernel::AttentionArgs& args) noexcept {
  const AttentionConfig& layer = reader.c.layer;
  for (std::size_t r = 0; r < reader.rows(); ++r) {
    const std::size_t head = reader.of.kv_head * layer.group() + r % layer.group();
    const std::size_t token = reader.of.first + r / layer.group();
    const QueryScores query_scores(reader.c.query_scores[token * layer.heads + head]);
    query_scores.note(chunk, args.visible[r], args.p[r], args.max[r]);
  }
}

}  // namespace mica::block
