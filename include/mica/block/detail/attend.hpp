// SPDX-License-Identifier: Apache-2.0
//
// Attention of one layer: rotate queries and keys, put keys and values into the cache, and attend chunk by
// chunk. A task is one KV head and some tokens, so that keys and values are read once for all query heads
// that share them. Where this would leave workers idle and the context is long, a task is one chunk of the
// context, and the chunks of a head are merged afterwards in their order. The operations are the same, so the
// bits are the same. Kernels: kernel/attention.hpp.
#pragma once

#include "mica/base/bits.hpp"
#include "mica/block/detail/attention_reader.hpp"
#include "mica/exec/concept.hpp"
#include "mica/kernel/scalar/attention.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace mica::block {

/// Norms and rotates one head of queries or keys, tokens [first, last).
template <Kernels K, class Context>
void turn_head(const Context& c, MatrixView<float> x, const float* weight, std::size_t first,
               std::size_t last) noexcept {
  const AttentionConfig& layer = c.layer;
  if (layer.head_norm == HeadNorm::weighted) {
    K::rms_norm(kernel::RmsNormArgs{x, weight, c.epsilon, x, first, last});
  }
  if (!layer.rotates()) return;
  K::rope(kernel::RopeArgs{x, layer.head_dim, 2 * c.cos.cols(), c.pairs, c.cos, c.sin, first, last});
  if (layer.head_norm == HeadNorm::plain_after_rope) {
    K::rms_norm(kernel::RmsNormArgs{x, nullptr, c.epsilon, x, first, last});
  }
}

/// Queries at far positions grow (AttentionConfig::position_scale).
template <class Context>
void scale_by_position(const Context& c, MatrixView<float> q, std::size_t first, std::size_t last) noexcept {
  for (std::size_t t = first; t < last; ++t) {
    const std::size_t position = c.kv.evicted() + c.kv.pos + t;
    const auto steps = static_cast<double>((position + c.layer.position_offset) / c.layer.position_step);
    const auto factor =
        static_cast<float>(1 + static_cast<double>(c.layer.position_scale) * std::log1p(steps));
    for (float& x : q[t]) x *= factor;
  }
}

/// Tokens of one tile in element E.
template <Kernels K, class E>
void store_tokens(const kernel::StoreArgs& a) noexcept {
  if constexpr (kernel::Stores<K, E>) {
    K::template store<E>(a);
  } else {
    kernel::scalar::store<E>(a);
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
  const auto& elements = c.kv.elements;
  const std::size_t value_offset = kv::key_bytes(elements, d);
  for (std::size_t t = first, n = 0; t < last; t += n) {  // the tokens of one tile
    const std::size_t at = c.kv.pos + t, slot = at % format::tile_tokens;
    n = std::min(last - t, format::tile_tokens - slot);
    std::byte* const tile = c.kv.storage.run(c.kv.layer, kv_head, c.kv.place(at / format::tile_tokens)).data;
    elements.visit_keys([&](auto e) {
      store_tokens<K, typename decltype(e)::type>({tile, slot, k.rows(t, n), false});
    });
    elements.visit_values([&](auto e) {
      store_tokens<K, typename decltype(e)::type>({tile + value_offset, slot, v.rows(t, n), true});
    });
  }
}

/// Stores all tokens of a step, of one KV head.
template <Kernels K, class Context>
void store_whole_head(const Context& c, std::size_t kv_head) noexcept {
  store_head<K>(c, kv_head, 0, c.q.rows());
  c.kv.stored_head(c, kv_head);
}

/// The state of rows before the first chunk. A sink is a token with the score of its head and a value of
/// zeros.
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

/// Stores the result of one KV head and applies the gate.
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

/// Attention of one KV head for tokens whose keys and values are stored.
template <Kernels K, class Context>
void attend_head(const Context& c, const HeadTokens& of, float* memory) noexcept {
  const ReaderOf<Context> reader(c, of);
  const AttentionScratch s(memory, reader.rows(), c.layer.head_dim);
  const kernel::AttentionState now{s.max, s.sum, s.out}, state{s.state_max, s.state_sum, s.state};
  reader.queries(s.q);
  const std::size_t first = reader.first_chunk(), end = reader.end_chunk();
  auto tiles = reader.tiles(first);
  if (first + 1 == end && !c.layer.sinks) {  // nothing to merge
    static_cast<void>(reader.template attend<K>(first, tiles, tiles_after(reader, first), s, state));
  } else {
    begin_state(c, of.kv_head, state);
    for (std::size_t chunk = first; chunk < end; ++chunk) {
      const auto ahead = tiles_after(reader, chunk);
      K::attention_merge(reader.template attend<K>(chunk, tiles, ahead, s, now), state);
      tiles = ahead;
    }
  }
  K::attention_finish(state);
  finish_head<K>(c, of.kv_head, of.first, of.last, s.state);
}

/// The division of one block of tokens where heads are fewer than workers, or do not divide evenly among
/// them. Results of chunks are stored in the scratch of the workers that few rows leave unused.
struct ContextSplit {
  std::size_t chunks = 0;  // of each KV head at a time; 0: heads stay whole

  /// Numbers of a result with `rows` rows: out, max and sum.
  [[nodiscard]] static constexpr std::size_t result_floats(std::size_t rows, std::size_t head_dim) noexcept {
    return round_up<std::size_t>(rows * (head_dim + 2), 16);
  }
  /// Results that the scratch of one worker holds behind its own part.
  [[nodiscard]] static std::size_t results(const AttentionConfig& layer, std::size_t rows) noexcept {
    const std::size_t d = layer.head_dim, all = AttentionScratch::floats(layer.group(), d);
    const std::size_t own = AttentionScratch::floats_for(rows, d);
    return own < all ? (all - own) / result_floats(rows, d) : 0;
  }
  /// A step of `rows` rows a KV head that sees `chunks` chunks. Each additional run takes about the time of
  /// one chunk, so a short context is never split.
  [[nodiscard]] static ContextSplit of(const AttentionConfig& layer, std::size_t rows, std::size_t chunks,
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
  const ReaderOf<Context> any(c, {0, 0, n});
  for (std::size_t first = any.first_chunk(); first < any.end_chunk(); first += split.chunks) {
    const std::size_t count = std::min(split.chunks, any.end_chunk() - first);
    executor.run(heads * count, [&](std::size_t task, std::size_t worker) noexcept {
      const ReaderOf<Context> reader(c, {task / count, 0, n});
      const AttentionScratch s(scratch(worker), rows, d);
      const std::size_t chunk = first + task % count;
      reader.queries(s.q);
      reader.template attend<K>(chunk, reader.tiles(chunk), tiles_after(reader, chunk), s,
                                result(heads + task));
    });
    executor.run(heads, [&](std::size_t head, std::size_t worker) noexcept {
      const ReaderOf<Context> reader(c, {head, 0, n});
      const AttentionScratch s(scratch(worker), rows, d);
      const kernel::AttentionState state = result(head);
      for (std::size_t i = 0; i < count; ++i) {
        const kernel::AttentionState now = result(heads + head * count + i);
        reader.see(first + i, s.visible);
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
    const ReaderOf<Context> any(c, {0, 0, n});
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
  c.kv.stored_all(executor, c);
  executor.run(kv_heads * blocks, [&](std::size_t task, std::size_t worker) noexcept {
    attend_head<K>(c, tokens(task), scratch(worker));
  });
}

/// Attention of one KV head for all tokens of a part, block by block.
template <Kernels K, class Context>
void attend_whole_head(const Context& c, std::size_t kv_head, float* memory) noexcept {
  const std::size_t n = c.q.rows(), block = std::max<std::size_t>(1, attention_rows / c.layer.group());
  for (std::size_t first = 0; first < n; first += block)
    attend_head<K>(c, {kv_head, first, std::min(first + block, n)}, memory);
}

/// A head of a sequence is one task where each sequence has one token, or where sequences have little to
/// attend to: whole texts, which see nothing but themselves.
template <KvElements E, KvStorage S>
template <Kernels K, Executor X, class ContextOf, class Scratch>
void KvView<E, S>::attend_all(X& executor, std::size_t sequences, std::size_t tokens, ContextOf&& context,
                              Scratch&& scratch) noexcept {
  const AttentionConfig& layer = context(0).layer;
  const bool short_texts = layer.bidirectional && layer.kv_heads * sequences >= 4 * executor.workers();
  if (sequences == 1 || (tokens != sequences && !short_texts)) {
    for (std::size_t i = 0; i < sequences; ++i) block::attend<K>(executor, context(i), scratch);
    return;
  }
  executor.run(layer.kv_heads * sequences, [&](std::size_t task, std::size_t worker) noexcept {
    // The heads of a text are one after the other, mostly with the worker that has its tokens. Other
    // sequences take turns, so that a worker has different lengths.
    const std::size_t part = short_texts ? task / layer.kv_heads : task % sequences,
                      head = short_texts ? task % layer.kv_heads : task / sequences;
    const auto c = context(part);
    store_whole_head<K>(c, head);
    attend_whole_head<K>(c, head, scratch(worker));
  });
}

}  // namespace mica::block
