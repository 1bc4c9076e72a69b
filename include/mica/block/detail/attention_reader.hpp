// SPDX-License-Identifier: Apache-2.0
//
// The chunks of the context that the tokens of a task see: the addresses of the tiles of a chunk, the tokens
// of a chunk that each row sees, and attention to one chunk.
#pragma once

#include "mica/block/detail/attention_context.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace mica::block {

using TileAddresses = std::array<const std::byte*, kernel::chunk_tiles>;

/// The addresses of a chunk's tiles that hold a token in [begin, end), in a layer of the storage; the others
/// stay null.
template <class View>
TileAddresses chunk_tiles(const View& view, std::size_t layer, std::size_t kv_head, std::size_t chunk,
                          std::size_t begin, std::size_t end, std::size_t tile_bytes) noexcept {
  TileAddresses tiles{};
  const std::size_t first = chunk * kernel::chunk_tiles, last = ceil_div(end, format::tile_tokens);
  const std::size_t count = std::min(kernel::chunk_tiles, std::max(last, first) - first);
  std::size_t i = std::max(begin / format::tile_tokens, first) - first;
  while (i < count) {
    const std::size_t place = view.place(first + i);
    const kv::Run run = view.storage.run(layer, kv_head, place);
    for (std::size_t j = 0; j < run.tiles && i < count && view.place(first + i) == place + j; ++j, ++i) {
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

/// The kernels that read tiles of one chunk in one element.
template <Kernels K, KvElements Elements>
struct ChunkForm {
  const Elements& elements;
  kernel::AttentionArgs args;

  void scores() const noexcept {
    elements.visit_keys([&](auto e) { K::template attention_scores<typename decltype(e)::type>(args); });
  }
  void values() const noexcept {
    elements.visit_values([&](auto e) { K::template attention_values<typename decltype(e)::type>(args); });
  }
};

/// The slope of a head with ALiBi (the published code): 2^(-max (h + 1) / n) for the first n heads, n being
/// the largest power of 2; the others take every second slope of 2 n heads.
[[nodiscard]] inline float alibi_slope(const AttentionConfig& layer, std::size_t head) noexcept {
  const std::size_t n = std::bit_floor(layer.heads);
  const double step = head < n ? static_cast<double>(head + 1) / static_cast<double>(n)
                               : static_cast<double>(2 * (head - n) + 1) / static_cast<double>(2 * n);
  return static_cast<float>(std::exp2(-static_cast<double>(layer.alibi_max) * step));
}

/// Tokens [first, last) of a step, seen from one KV head.
struct HeadTokens {
  std::size_t kv_head;
  std::size_t first;
  std::size_t last;
};

/// The chunks that such tokens see. Positions count resident tokens.
template <class Context>
struct ChunkReader {
  using Tiles = TileAddresses;

  const Context& c;
  HeadTokens of;
  std::size_t begin;  // the first position that one of them sees
  std::size_t end;

  ChunkReader(const Context& context, const HeadTokens& tokens) noexcept
      : c(context),
        of(tokens),
        begin(c.layer.first_seen(c.kv.pos + of.first)),
        end(c.layer.end_seen(c.kv.pos + of.last - 1, text_end())) {}

  [[nodiscard]] std::size_t first_chunk() const noexcept { return begin / kernel::chunk_tokens; }
  [[nodiscard]] std::size_t end_chunk() const noexcept { return ceil_div(end, kernel::chunk_tokens); }
  [[nodiscard]] std::size_t text_end() const noexcept { return c.kv.pos + c.q.rows(); }
  [[nodiscard]] std::size_t rows() const noexcept { return (of.last - of.first) * c.layer.group(); }

  [[nodiscard]] Tiles tiles(std::size_t chunk) const noexcept {
    return chunk_tiles(c.kv, c.kv.layer, of.kv_head, chunk, begin, end,
                       kv::tile_bytes(c.kv.elements, c.layer.head_dim));
  }
  /// What each row sees of a chunk: tokens [first, last) = seen(position of the row).
  template <class Seen>
  void see(std::size_t chunk, kernel::Visible* visible, Seen&& seen) const noexcept {  // (rows)
    for (std::size_t r = 0; r < rows(); ++r) {
      const auto [first, last] = seen(c.kv.pos + of.first + r / c.layer.group());
      visible[r] = visible_part(first, last, chunk);
    }
  }
  void see(std::size_t chunk, kernel::Visible* visible) const noexcept {  // (rows)
    see(chunk, visible, [this](std::size_t pos) {
      return std::array{c.layer.first_seen(pos), c.layer.end_seen(pos, text_end())};
    });
  }
  /// Copies the queries together.
  void queries(MatrixView<float> q) const noexcept {  // (rows, head_dim)
    const std::size_t group = c.layer.group();
    for (std::size_t r = 0; r < rows(); ++r) {
      std::copy_n(c.query(of.kv_head * group + r % group)[of.first + r / group].data(), c.layer.head_dim,
                  q[r].data());
    }
  }

  /// Attention to one chunk: the results of its rows, and the arguments of the merge. ahead: tiles that are
  /// read next.
  template <Kernels K>
  kernel::AttentionArgs attend(std::size_t chunk, const Tiles& tiles, const Tiles& ahead,
                               const AttentionScratch& s,
                               const kernel::AttentionState& result) const noexcept {
    const auto whole = this->template form_of<K>(c.kv.elements, tiles, ahead, s, result);
    see(chunk, s.visible);
    whole.scores();
    if (c.layer.alibi_max != 0) lower_by_distance(chunk, s);
    K::attention_softmax(whole.args);
    whole.values();
    return whole.args;
  }
  /// ALiBi: scores of visible tokens lose alibi_slope() for each token of distance.
  void lower_by_distance(std::size_t chunk, const AttentionScratch& s) const noexcept {
    const std::size_t group = c.layer.group();
    for (std::size_t r = 0; r < rows(); ++r) {
      const float slope = alibi_slope(c.layer, of.kv_head * group + r % group);
      const std::size_t pos = c.kv.pos + of.first + r / group;
      for (std::size_t j = s.visible[r].first; j < s.visible[r].last; ++j) {
        const std::size_t at = chunk * kernel::chunk_tokens + j;
        s.p[r][j] -= slope * static_cast<float>(at < pos ? pos - at : at - pos);
      }
    }
  }
  /// The tiles of a chunk in one element.
  template <Kernels K, KvElements Elements>
  [[nodiscard]] ChunkForm<K, Elements> form_of(const Elements& elements, const TileAddresses& tiles,
                                               const TileAddresses& ahead, const AttentionScratch& s,
                                               const kernel::AttentionState& result) const noexcept {
    return {elements,
            {.tiles = tiles.data(),
             .value_offset = kv::key_bytes(elements, c.layer.head_dim),
             .head_dim = c.layer.head_dim,
             .scale = c.scale(),
             .q = s.q,
             .visible = s.visible,
             .p = s.p,
             .max = result.max,
             .sum = result.sum,
             .out = result.out,
             .softcap = c.layer.attention_softcap,
             .ahead = ahead.data(),
             .fast8 = c.fast8}};
  }
};

/// The reader of a context, as its view wants it.
template <class Context>
using ReaderOf = typename decltype(Context::kv)::template Reader<Context>;

/// The tiles that are read after a chunk: those of the next one, or the first of the next head where one task
/// has all tokens.
template <class Reader>
[[nodiscard]] typename Reader::Tiles tiles_after(const Reader& reader, std::size_t chunk) noexcept {
  const auto& [head, first, last] = reader.of;
  if (chunk + 1 < reader.end_chunk()) return reader.tiles(chunk + 1);
  if (head + 1 == reader.c.layer.kv_heads || last - first < reader.c.q.rows()) return {};
  return Reader(reader.c, {head + 1, first, last}).tiles(reader.first_chunk());
}

}  // namespace mica::block
