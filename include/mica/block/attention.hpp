// SPDX-License-Identifier: Apache-2.0
//
// Attention of one layer: rotate queries and keys, put keys and values into the cache, and attend chunk by chunk. The
// unit of work is one KV head and a block of tokens, so that keys and values are read once for all query heads that
// share them. Kernels: kernel/attention.hpp.
#pragma once

#include "mica/base/bits.hpp"
#include "mica/block/config.hpp"
#include "mica/exec/concept.hpp"
#include "mica/kernel/concept.hpp"
#include "mica/kv/concept.hpp"
#include "mica/kv/elements.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>

namespace mica::block {

/// Query rows (tokens x heads of a group) in one unit of work, unless a single token has more.
inline constexpr std::size_t attention_rows = 64;

[[nodiscard]] constexpr std::size_t rows_for(std::size_t group) noexcept {
  return std::max(group, attention_rows);
}

/// Scratch of one worker, cut from one piece of memory.
struct AttentionScratch {
  MatrixView<float> q;       // (rows, head_dim)
  MatrixView<float> p;       // (rows, 256)
  MatrixView<float> out;     // (rows, head_dim)
  MatrixView<float> state;   // (rows, head_dim)
  float* max;                // (rows)
  float* sum;                // (rows)
  float* state_max;          // (rows)
  float* state_sum;          // (rows)
  kernel::Visible* visible;  // (rows)

  [[nodiscard]] static constexpr std::size_t floats(std::size_t max_group, std::size_t head_dim) noexcept {
    return rows_for(max_group) * (kernel::chunk_tokens + 3 * head_dim + 5) +
           4 * 16;  // 16: each part keeps its line
  }

  AttentionScratch(float* memory, std::size_t rows, std::size_t head_dim) noexcept {
    const auto take = [&](std::size_t n) {
      float* const part = memory;
      memory += round_up<std::size_t>(n, 16);
      return part;
    };
    p = {take(rows * kernel::chunk_tokens), rows, kernel::chunk_tokens};
    q = {take(rows * head_dim), rows, head_dim};
    out = {take(rows * head_dim), rows, head_dim};
    state = {take(rows * head_dim), rows, head_dim};
    float* const rest = take(5 * rows);
    max = rest;
    sum = rest + rows;
    state_max = rest + 2 * rows;
    state_sum = rest + 3 * rows;
    visible = reinterpret_cast<kernel::Visible*>(rest + 4 * rows);
  }
};

static_assert(sizeof(kernel::Visible) == sizeof(float));

/// What attention of one layer works on. Token t of the step stands at position pos + t.
template <KvElements Elements, KvStorage Storage>
struct AttentionContext {
  const LayerConfig& layer;
  std::size_t index = 0;        // of the layer
  std::size_t pos = 0;          // tokens before this step
  MatrixView<float> q;          // (n, heads * head_dim)
  MatrixView<float> k;          // (n, kv_heads * head_dim)
  MatrixView<float> v;          // (n, kv_heads * head_dim)
  MatrixView<float> out;        // (n, heads * head_dim)
  MatrixView<const float> cos;  // (n, dims / 2)
  MatrixView<const float> sin;  // (n, dims / 2)
  std::size_t rope_dims = 0;
  kernel::RopePairs pairs = kernel::RopePairs::adjacent;
  const Elements& elements;
  const Storage& cache;  // room for pos + n tokens

  /// Where the tile of a position lies.
  [[nodiscard]] std::byte* tile(std::size_t kv_head, std::size_t position) const noexcept {
    return cache.run(index, kv_head, position / format::tile_tokens).data;
  }
};

/// Rotates the queries and keys of one KV head and stores its keys and values, tokens [first, last).
template <Kernels K, class Context>
void store_head(const Context& c, std::size_t kv_head, std::size_t first, std::size_t last) noexcept {
  const std::size_t d = c.layer.head_dim, group = c.layer.group();
  const auto q = c.q.cols(kv_head * group * d, group * d);  // (n, group * head_dim)
  const auto k = c.k.cols(kv_head * d, d);                  // (n, head_dim)
  const auto v = c.v.cols(kv_head * d, d);                  // (n, head_dim)
  K::rope(kernel::RopeArgs{q, d, c.rope_dims, c.pairs, c.cos, c.sin, first, last});
  K::rope(kernel::RopeArgs{k, d, c.rope_dims, c.pairs, c.cos, c.sin, first, last});
  const std::size_t value_offset = kv::key_bytes(c.elements, d);
  for (std::size_t t = first; t < last; ++t) {
    std::byte* const tile = c.tile(kv_head, c.pos + t);
    const std::size_t slot = (c.pos + t) % format::tile_tokens;
    c.elements.visit_keys([&](auto e) { decltype(e)::type::store_key(tile, slot, d, k[t].data()); });
    c.elements.visit_values(
        [&](auto e) { decltype(e)::type::store_value(tile + value_offset, slot, d, v[t].data()); });
  }
}

/// The addresses of a chunk's tiles that hold a token before `end`; the others stay null.
template <class Context>
std::array<const std::byte*, kernel::chunk_tiles> chunk_tiles(const Context& c, std::size_t kv_head,
                                                              std::size_t chunk, std::size_t end,
                                                              std::size_t tile_bytes) noexcept {
  std::array<const std::byte*, kernel::chunk_tiles> tiles{};
  const std::size_t first = chunk * kernel::chunk_tiles;
  const std::size_t count = std::min(kernel::chunk_tiles, ceil_div(end, format::tile_tokens) - first);
  for (std::size_t i = 0; i < count;) {
    const kv::Run run = c.cache.run(c.index, kv_head, first + i);
    for (std::size_t j = 0; j < run.tiles && i < count; ++j, ++i) tiles[i] = run.data + j * tile_bytes;
  }
  return tiles;
}

/// Attention of one KV head for tokens [first, last), whose keys and values are stored.
template <Kernels K, class Context>
void attend_head(const Context& c, std::size_t kv_head, std::size_t first, std::size_t last,
                 float* memory) noexcept {
  const std::size_t d = c.layer.head_dim, group = c.layer.group();
  const std::size_t rows = (last - first) * group, end = c.pos + last;
  AttentionScratch s(memory, rows, d);
  for (std::size_t r = 0; r < rows; ++r) {
    std::copy_n(c.q[first + r / group].data() + (kv_head * group + r % group) * d, d, s.q[r].data());
  }
  std::fill_n(s.state_max, rows, -std::numeric_limits<float>::infinity());
  const kernel::AttentionState state{s.state_max, s.state_sum, s.state};
  const std::size_t tile_bytes = kv::tile_bytes(c.elements, d);
  const float scale = 1.0f / std::sqrt(static_cast<float>(d));
  for (std::size_t chunk = 0; chunk * kernel::chunk_tokens < end; ++chunk) {
    for (std::size_t r = 0; r < rows; ++r) {  // a token sees itself and all before it
      const std::size_t seen = c.pos + first + r / group + 1, before = chunk * kernel::chunk_tokens;
      s.visible[r] = {
          0, static_cast<std::uint16_t>(seen <= before ? 0 : std::min(seen - before, kernel::chunk_tokens))};
    }
    const auto tiles = chunk_tiles(c, kv_head, chunk, end, tile_bytes);
    const kernel::AttentionArgs args{
        tiles.data(), kv::key_bytes(c.elements, d), d, scale, s.q, s.visible, s.p, s.max, s.sum, s.out};
    c.elements.visit_keys([&](auto e) { K::template attention_scores<typename decltype(e)::type>(args); });
    K::attention_softmax(args);
    c.elements.visit_values([&](auto e) { K::template attention_values<typename decltype(e)::type>(args); });
    K::attention_merge(args, state);
  }
  K::attention_finish(state);
  for (std::size_t r = 0; r < rows; ++r) {
    std::copy_n(s.state[r].data(), d, c.out[first + r / group].data() + (kv_head * group + r % group) * d);
  }
}

/// Attention of all heads. `scratch(worker)` gives a worker its AttentionScratch memory.
template <Kernels K, Executor E, class Context, class Scratch>
void attend(E& executor, const Context& c, Scratch&& scratch) noexcept {
  const std::size_t n = c.q.rows(), kv_heads = c.layer.kv_heads;
  const std::size_t block = std::max<std::size_t>(1, attention_rows / c.layer.group());  // tokens
  const std::size_t blocks = ceil_div(n, block);
  if (blocks == 1) {  // every unit needs only what it stores itself
    executor.run(kv_heads, [&](std::size_t head, std::size_t worker) noexcept {
      store_head<K>(c, head, 0, n);
      attend_head<K>(c, head, 0, n, scratch(worker));
    });
    return;
  }
  executor.run(kv_heads * blocks, [&](std::size_t task, std::size_t) noexcept {
    const std::size_t first = task % blocks * block;
    store_head<K>(c, task / blocks, first, std::min(first + block, n));
  });
  executor.run(kv_heads * blocks, [&](std::size_t task, std::size_t worker) noexcept {
    const std::size_t first = task % blocks * block;
    attend_head<K>(c, task / blocks, first, std::min(first + block, n), scratch(worker));
  });
}

}  // namespace mica::block
