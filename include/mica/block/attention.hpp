// SPDX-License-Identifier: Apache-2.0
//
// Attention of one layer: rotate queries and keys, put keys and values into the cache, and attend chunk by chunk. The
// unit of work is one KV head and a block of tokens, so that keys and values are read once for all query heads that
// share them. Where that leaves workers idle over a long context, the unit is one chunk of it, and the chunks of a head
// are merged afterwards in their order: the same operations, so the same bits. Kernels: kernel/attention.hpp.
#pragma once

#include "mica/base/bits.hpp"
#include "mica/block/config.hpp"
#include "mica/block/looks.hpp"
#include "mica/exec/concept.hpp"
#include "mica/kernel/concept.hpp"
#include "mica/kv/aging.hpp"
#include "mica/kv/concept.hpp"
#include "mica/kv/elements.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>

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

  /// Numbers that a worker takes.
  [[nodiscard]] static constexpr std::size_t floats(std::size_t max_group, std::size_t head_dim) noexcept {
    return floats_for(rows_for(max_group), head_dim);
  }
  /// Numbers that a unit of so many rows needs of them.
  [[nodiscard]] static constexpr std::size_t floats_for(std::size_t rows, std::size_t head_dim) noexcept {
    return round_up<std::size_t>(rows * (kernel::chunk_tokens + 3 * head_dim + 5) + 4 * 16,
                                 16);  // 16: each part keeps its line
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

/// What attention of one layer works on. Token t of the step stands at position pos + t. A head's query is `q_stride`
/// numbers after that of the head before; with LayerConfig::q_gate its gate lies between them.
template <KvElements Elements, KvStorage Storage>
struct AttentionContext {
  const LayerConfig& layer;
  std::size_t cache_layer = 0;  // of the storage
  std::size_t old_layer =
      none;               // of the storage, with the old form of the same tokens; none: they do not age
  std::size_t pos = 0;    // tokens before this step that the layer holds: all, unless some were forgotten
  std::size_t gone = 0;   // those that were
  float epsilon = 0;      // of norms
  MatrixView<float> q;    // (n, heads * q_stride)
  MatrixView<float> k;    // (n, kv_heads * head_dim); empty when the keys of another layer are read
  MatrixView<float> v;    // (n, kv_heads * head_dim)
  MatrixView<float> out;  // (n, heads * head_dim)
  const float* q_norm = nullptr;     // (head_dim)
  const float* k_norm = nullptr;     // (head_dim)
  const float* sinks = nullptr;      // (heads), with LayerConfig::sinks
  MatrixView<const float> cos = {};  // (n, dims / 2), of a layer that rotates
  MatrixView<const float> sin = {};  // (n, dims / 2)
  kernel::RopePairs pairs = kernel::RopePairs::adjacent;
  const Elements& elements;
  const Storage& cache;  // room for pos + n tokens
  std::span<const std::uint32_t> places =
      {};  // of the tiles that are held, in their order; empty: their numbers
  MatrixView<float> looks =
      {};  // (n * heads, LooksLayout::width) or empty: what each query looked at (block/looks.hpp)

  [[nodiscard]] MatrixView<float> query(std::size_t head) const noexcept {  // (n, head_dim)
    return q.cols(head * layer.q_stride(), layer.head_dim);
  }
  [[nodiscard]] MatrixView<float> gate(std::size_t head) const noexcept {  // (n, head_dim)
    return q.cols(head * layer.q_stride() + layer.head_dim, layer.head_dim);
  }
  /// Where the tile of a position lies.
  [[nodiscard]] std::byte* tile(std::size_t kv_head, std::size_t position) const noexcept {
    return cache.run(cache_layer, kv_head, place(position / format::tile_tokens)).data;
  }
  /// The storage's number of a tile that is held.
  [[nodiscard]] std::size_t place(std::size_t tile) const noexcept {
    return places.empty() ? tile : places[tile];
  }
  /// Tokens before which a query at `at` sees old tiles.
  [[nodiscard]] std::size_t aged(std::size_t at) const noexcept {
    if constexpr (AgingElements<Elements>) {
      if (old_layer != none) return kv::aged_tokens(at, elements.recent());
    }
    return 0;
  }
  [[nodiscard]] float scale() const noexcept {
    return layer.attention_scale != 0 ? layer.attention_scale
                                      : 1.0f / std::sqrt(static_cast<float>(layer.head_dim));
  }
};

/// Norms and rotates one head of queries or keys, tokens [first, last).
template <Kernels K, class Context>
void turn_head(const Context& c, MatrixView<float> x, const float* weight, std::size_t first,
               std::size_t last) noexcept {
  const LayerConfig& layer = c.layer;
  if (layer.head_norm == HeadNorm::weighted) {
    K::rms_norm(kernel::RmsNormArgs{x, weight, c.epsilon, x, first, last});
  }
  if (!layer.rotates()) return;
  K::rope(kernel::RopeArgs{x, layer.head_dim, 2 * c.cos.cols(), c.pairs, c.cos, c.sin, first, last});
  if (layer.head_norm == HeadNorm::plain_after_rope) {
    K::rms_norm(kernel::RmsNormArgs{x, nullptr, c.epsilon, x, first, last});
  }
}

/// Queries at far positions grow (LayerConfig::position_scale).
template <class Context>
void scale_by_position(const Context& c, MatrixView<float> q, std::size_t first, std::size_t last) noexcept {
  for (std::size_t t = first; t < last; ++t) {
    const std::size_t position = c.gone + c.pos + t;
    const auto steps = static_cast<double>((position + c.layer.position_offset) / c.layer.position_step);
    const auto factor =
        static_cast<float>(1 + static_cast<double>(c.layer.position_scale) * std::log1p(steps));
    for (float& x : q[t]) x *= factor;
  }
}

/// Makes the queries and keys of one KV head ready and stores its keys and values, tokens [first, last).
template <Kernels K, class Context>
void store_head(const Context& c, std::size_t kv_head, std::size_t first, std::size_t last) noexcept {
  const std::size_t d = c.layer.head_dim, group = c.layer.group();
  for (std::size_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
    turn_head<K>(c, c.query(head), c.q_norm, first, last);
    if (c.layer.position_scale != 0) scale_by_position(c, c.query(head), first, last);
  }
  if (!c.layer.stores_kv()) return;
  const auto k = c.k.cols(kv_head * d, d), v = c.v.cols(kv_head * d, d);  // (n, head_dim)
  if (c.layer.v_norm) K::rms_norm(kernel::RmsNormArgs{v, nullptr, c.epsilon, v, first, last});
  turn_head<K>(c, k, c.k_norm, first, last);
  const std::size_t value_offset = kv::key_bytes(c.elements, d);
  for (std::size_t t = first; t < last; ++t) {
    std::byte* const tile = c.tile(kv_head, c.pos + t);
    const std::size_t slot = (c.pos + t) % format::tile_tokens;
    c.elements.visit_keys([&](auto e) { decltype(e)::type::store_key(tile, slot, d, k[t].data()); });
    c.elements.visit_values(
        [&](auto e) { decltype(e)::type::store_value(tile + value_offset, slot, d, v[t].data()); });
  }
}

/// Tiles that the tokens of a step complete, of one KV head: [first, last).
struct FullTiles {
  std::size_t first = 0;
  std::size_t last = 0;

  [[nodiscard]] std::size_t count() const noexcept { return last - first; }
};

/// Those that get an old form: none where nothing ages.
template <class Context>
FullTiles tiles_to_age(const Context& c) noexcept {
  if (c.old_layer == none || !c.layer.stores_kv()) return {};
  return {c.pos / format::tile_tokens, (c.pos + c.q.rows()) / format::tile_tokens};
}

/// Stores full tiles of a head, whose tokens are all stored, as old ones.
template <class Context>
void age_tiles(const Context& c, std::size_t kv_head, FullTiles tiles) noexcept {
  if constexpr (AgingElements<std::remove_cvref_t<decltype(c.elements)>>) {
    for (std::size_t tile = tiles.first; tile < tiles.last; ++tile) {
      kv::store_old_tile(c.elements, c.layer.head_dim, c.cache.run(c.cache_layer, kv_head, tile).data,
                         c.cache.run(c.old_layer, kv_head, tile).data);
    }
  }
}

/// Stores all tokens of a step, of one KV head.
template <Kernels K, class Context>
void store_whole_head(const Context& c, std::size_t kv_head) noexcept {
  store_head<K>(c, kv_head, 0, c.q.rows());
  age_tiles(c, kv_head, tiles_to_age(c));
}

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

/// The state of rows before the first chunk. A sink is a token with the score of its head and a value of zeros.
template <class Context>
void begin_state(const Context& c, std::size_t kv_head, const kernel::AttentionState& state) noexcept {
  const std::size_t group = c.layer.group();
  for (std::size_t r = 0; r < state.out.rows(); ++r) {
    state.max[r] =
        c.layer.sinks ? c.sinks[kv_head * group + r % group] : -std::numeric_limits<float>::infinity();
    state.sum[r] = 1;
    if (c.layer.sinks) std::fill(state.out[r].begin(), state.out[r].end(), 0.0f);
  }
}

/// Takes the result of one KV head to its place and applies the gate.
template <Kernels K, class Context>
void finish_head(const Context& c, std::size_t kv_head, std::size_t first, std::size_t last,
                 MatrixView<const float> rows) noexcept {
  const std::size_t d = c.layer.head_dim, group = c.layer.group();
  for (std::size_t r = 0; r < rows.rows(); ++r) {
    std::copy_n(rows[r].data(), d, c.out[first + r / group].data() + (kv_head * group + r % group) * d);
  }
  if (!c.layer.q_gate) return;
  for (std::size_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
    const auto out = c.out.cols(head * d, d);  // (n, head_dim)
    K::gated(kernel::GatedArgs{kernel::Gate::sigmoid, c.gate(head), out, out, first, last});
  }
}

/// Tokens [first, last) of a step, seen from one KV head.
struct HeadTokens {
  std::size_t kv_head;
  std::size_t first;
  std::size_t last;
};

/// Which form of tokens is meant.
enum class Age { any, recent, old };

/// Which chunks the tokens of a unit of work see, and what is read where.
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
  /// The tiles read after a chunk: those of the next one, or the first of the next head where one unit has all tokens.
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

/// Notes how much each row of a chunk looked at its tiles.
template <class Context>
void note_looks(const ChunkReader<Context>& reader, std::size_t chunk,
                const kernel::AttentionArgs& args) noexcept {
  const LayerConfig& layer = reader.c.layer;
  for (std::size_t r = 0; r < reader.rows(); ++r) {
    const std::size_t head = reader.of.kv_head * layer.group() + r % layer.group();
    const std::size_t token = reader.of.first + r / layer.group();
    const Looks looks(reader.c.looks[token * layer.heads + head]);
    looks.note(chunk, args.visible[r], args.p[r], args.max[r]);
  }
}

/// One chunk in one form: the kernels that read tiles, and what they ask for.
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

/// A chunk of which some rows see old tiles: scores of both forms stand side by side, values of recent tokens are added to
/// those of old ones. The operations of a row are those of one element, in the same order.
template <Kernels K, class Context, class Old, class Recent>
void attend_aged_chunk(const ChunkReader<Context>& reader, std::size_t chunk, const Old& old,
                       const Recent& recent, const AttentionScratch& s) noexcept {
  reader.see(chunk, Age::old, s.visible);
  old.scores();
  reader.see(chunk, Age::recent, s.visible);
  recent.scores();
  reader.see(chunk, Age::any, s.visible);
  K::attention_softmax(recent.args);
  reader.see(chunk, Age::old, s.visible);
  old.values();
  reader.see(chunk, Age::recent, s.visible);
  recent.values();
  reader.see(chunk, Age::any, s.visible);
}

/// One chunk: the results of its rows, and what merging them asks for.
template <Kernels K, class Context>
kernel::AttentionArgs attend_chunk(const ChunkReader<Context>& reader, std::size_t chunk,
                                   const ChunkTiles& tiles, const ChunkTiles& ahead,
                                   const AttentionScratch& s, const kernel::AttentionState& result) noexcept {
  const Context& c = reader.c;
  const auto form = [&]<class Elements>(const Elements& elements, const TileAddresses& at,
                                        const TileAddresses& next) -> ChunkForm<K, Elements> {
    return {elements,
            {.tiles = at.data(),
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
             .ahead = next.data()}};
  };
  auto recent = form(c.elements, tiles.recent, ahead.recent);
  if constexpr (ChunkReader<Context>::aging) {
    if (reader.sees_old(chunk)) {
      recent.args.adds = true;
      attend_aged_chunk<K>(reader, chunk, form(c.elements.old(), tiles.old, ahead.old), recent, s);
      return recent.args;
    }
  }
  reader.see(chunk, Age::any, s.visible);
  recent.scores();
  K::attention_softmax(recent.args);
  if (c.looks.rows() != 0) note_looks(reader, chunk, recent.args);
  recent.values();
  return recent.args;
}

/// Attention of one KV head for tokens whose keys and values are stored.
template <Kernels K, class Context>
void attend_head(const Context& c, const HeadTokens& of, float* memory) noexcept {
  const ChunkReader<Context> reader{c, of};
  const AttentionScratch s(memory, reader.rows(), c.layer.head_dim);
  const kernel::AttentionState now{s.max, s.sum, s.out}, state{s.state_max, s.state_sum, s.state};
  reader.queries(s.q);
  begin_state(c, of.kv_head, state);
  auto tiles = reader.tiles(reader.first_chunk());
  for (std::size_t chunk = reader.first_chunk(); chunk < reader.end_chunk(); ++chunk) {
    const auto ahead = reader.tiles_after(chunk);
    const auto args = attend_chunk<K>(reader, chunk, tiles, ahead, s, now);
    K::attention_merge(args, state);
    tiles = ahead;
  }
  K::attention_finish(state);
  finish_head<K>(c, of.kv_head, of.first, of.last, s.state);
}

/// How the work of one block of tokens is cut where heads are fewer than workers, or do not divide evenly among them.
/// Results of chunks wait in what the scratch of the workers holds beside that of so few rows.
struct ContextSplit {
  std::size_t chunks = 0;  // of each KV head at a time; 0: heads stay whole

  /// Numbers of a result of so many rows: out, max and sum.
  [[nodiscard]] static constexpr std::size_t result_floats(std::size_t rows, std::size_t head_dim) noexcept {
    return round_up<std::size_t>(rows * (head_dim + 2), 16);
  }
  /// Results that the scratch of one worker holds behind its own part.
  [[nodiscard]] static std::size_t results(const LayerConfig& layer, std::size_t rows) noexcept {
    const std::size_t d = layer.head_dim, all = AttentionScratch::floats(layer.group(), d);
    const std::size_t own = AttentionScratch::floats_for(rows, d);
    return own < all ? (all - own) / result_floats(rows, d) : 0;
  }
  /// A step of `rows` rows a KV head that sees `chunks` chunks. Each of the runs that are more costs about as much as the
  /// work of one chunk, so a short context is never split.
  [[nodiscard]] static ContextSplit of(const LayerConfig& layer, std::size_t rows, std::size_t chunks,
                                       std::size_t workers) noexcept {
    const std::size_t heads = layer.kv_heads, room = workers * results(layer, rows) / heads;
    if (workers == 1 || room < 2) return {};
    const std::size_t each = std::min(chunks, room - 1);  // and the state
    const std::size_t rounds = ceil_div(chunks, each);
    const std::size_t split = ceil_div(heads * chunks, workers) + 3 * rounds + 1;
    return {split < ceil_div(heads, workers) * chunks ? each : 0};
  }
};

/// Attention of all heads for tokens that one block holds, chunk by chunk.
template <Kernels K, Executor E, class Context, class Scratch>
void attend_chunks(E& executor, const Context& c, const ContextSplit& split, Scratch&& scratch) noexcept {
  const std::size_t n = c.q.rows(), heads = c.layer.kv_heads, d = c.layer.head_dim;
  const std::size_t rows = n * c.layer.group(), own = AttentionScratch::floats_for(rows, d);
  const auto result = [&](std::size_t index) -> kernel::AttentionState {
    const std::size_t each = ContextSplit::result_floats(rows, d), workers = executor.workers();
    float* const at = scratch(index % workers) + own + index / workers * each;
    return {at + rows * d, at + rows * (d + 1), {at, rows, d}};
  };
  executor.run(heads, [&](std::size_t head, std::size_t) noexcept {
    store_whole_head<K>(c, head);
    begin_state(c, head, result(head));
  });
  const ChunkReader<Context> any{c, {0, 0, n}};
  for (std::size_t first = any.first_chunk(); first < any.end_chunk(); first += split.chunks) {
    const std::size_t count = std::min(split.chunks, any.end_chunk() - first);
    executor.run(heads * count, [&](std::size_t task, std::size_t worker) noexcept {
      const ChunkReader<Context> reader{c, {task / count, 0, n}};
      const AttentionScratch s(scratch(worker), rows, d);
      const std::size_t chunk = first + task % count;
      reader.queries(s.q);
      attend_chunk<K>(reader, chunk, reader.tiles(chunk), reader.tiles_after(chunk), s, result(heads + task));
    });
    executor.run(heads, [&](std::size_t head, std::size_t worker) noexcept {
      const ChunkReader<Context> reader{c, {head, 0, n}};
      const AttentionScratch s(scratch(worker), rows, d);
      const kernel::AttentionState state = result(head);
      for (std::size_t i = 0; i < count; ++i) {
        const kernel::AttentionState now = result(heads + head * count + i);
        reader.see(first + i, Age::any, s.visible);
        kernel::AttentionArgs args;
        args.head_dim = d;
        args.q = s.q;  // as many rows
        args.visible = s.visible;
        args.max = now.max;
        args.sum = now.sum;
        args.out = now.out;
        K::attention_merge(args, state);
      }
      if (first + count < any.end_chunk()) return;
      K::attention_finish(state);
      finish_head<K>(c, head, 0, n, state.out);
    });
  }
}

/// Attention of all heads. `scratch(worker)` gives a worker its AttentionScratch memory.
template <Kernels K, Executor E, class Context, class Scratch>
void attend(E& executor, const Context& c, Scratch&& scratch) noexcept {
  const std::size_t n = c.q.rows(), kv_heads = c.layer.kv_heads;
  const std::size_t block = std::max<std::size_t>(1, attention_rows / c.layer.group());  // tokens
  const std::size_t blocks = ceil_div(n, block);
  if (blocks == 1) {
    const ChunkReader<Context> any{c, {0, 0, n}};
    const auto split =
        ContextSplit::of(c.layer, any.rows(), any.end_chunk() - any.first_chunk(), executor.workers());
    if (split.chunks != 0) return attend_chunks<K>(executor, c, split, scratch);
    executor.run(kv_heads, [&](std::size_t head, std::size_t worker) noexcept {
      store_whole_head<K>(c, head);  // a head needs only what it stores itself
      attend_head<K>(c, {head, 0, n}, scratch(worker));
    });
    return;
  }
  // Later tokens see more: the first block is followed by the last one, the second by the last but one.
  const auto tokens = [=](std::size_t task) -> HeadTokens {
    const std::size_t i = task % blocks, at = (i % 2 == 0 ? i / 2 : blocks - 1 - i / 2) * block;
    return {task / blocks, at, std::min(at + block, n)};
  };
  executor.run(kv_heads * blocks, [&](std::size_t task, std::size_t) noexcept {
    const HeadTokens of = tokens(task);
    store_head<K>(c, of.kv_head, of.first, of.last);
  });
  if (const FullTiles full = tiles_to_age(c); full.count() != 0) {  // their tokens are of several blocks
    executor.run(kv_heads * full.count(), [&](std::size_t task, std::size_t) noexcept {
      const std::size_t tile = full.first + task % full.count();
      age_tiles(c, task / full.count(), {tile, tile + 1});
    });
  }
  executor.run(kv_heads * blocks, [&](std::size_t task, std::size_t worker) noexcept {
    attend_head<K>(c, tokens(task), scratch(worker));
  });
}

/// Attention of one token of each of several sequences, in one run. context(i): the AttentionContext of sequence i, whose
/// matrices have one row.
template <Kernels K, Executor E, class ContextOf, class Scratch>
void attend_each(E& executor, std::size_t sequences, std::size_t kv_heads, ContextOf&& context,
                 Scratch&& scratch) noexcept {
  executor.run(kv_heads * sequences, [&](std::size_t task, std::size_t worker) noexcept {
    const auto c = context(task % sequences);  // neighbours in a worker's share are of unlike lengths
    store_whole_head<K>(c, task / sequences);
    attend_head<K>(c, {task / sequences, 0, 1}, scratch(worker));
  });
}

}  // namespace mica::block
