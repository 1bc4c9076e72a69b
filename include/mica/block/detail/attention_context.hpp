// SPDX-License-Identifier: Apache-2.0
//
// The arguments of attention in one layer, the scratch of its workers, and its view of the keys and values of
// one sequence: the tiles in their order, and their element. The plain view is here. Other views derive from
// it, and the policies of a model determine which one is used (model/detail/kv_layout.hpp):
//
//   KvView        every token is resident, in one element
//   EvictedView   some tokens were evicted, later ones are resident      block/detail/scored_view.hpp
//   ScoredView    the same, for a policy that needs attention scores    block/detail/scored_view.hpp
//   AgedView<V>   one of these, with other elements for old tokens       block/detail/aged_view.hpp
#pragma once

#include "mica/base/bits.hpp"
#include "mica/block/attention_config.hpp"
#include "mica/exec/concept.hpp"
#include "mica/kernel/concept.hpp"
#include "mica/kv/concept.hpp"
#include "mica/kv/elements.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace mica::block {

template <class Context>
struct ChunkReader;

/// Owns nothing. Derived views hide the members that they change: nothing here is virtual.
template <KvElements E, KvStorage S>
struct KvView {
  const E& elements;
  const S& storage;       // room for pos + n tokens
  std::size_t layer = 0;  // of the storage
  std::size_t pos = 0;    // resident tokens before this step

  /// What reads and attends to one chunk of it (block/detail/attention_reader.hpp).
  template <class Context>
  using Reader = ChunkReader<Context>;

  KvView(const E& kv_elements, const S& kv_storage, std::size_t kv_layer, std::size_t kv_pos) noexcept
      : elements(kv_elements), storage(kv_storage), layer(kv_layer), pos(kv_pos) {}

  /// Tokens that were evicted, all before position pos + evicted().
  [[nodiscard]] static constexpr std::size_t evicted() noexcept { return 0; }
  /// The storage's number of a resident tile.
  [[nodiscard]] static constexpr std::size_t place(std::size_t tile) noexcept { return tile; }

  /// The tokens of a step are stored in one KV head, or in all.
  template <class Context>
  void stored_head(const Context&, std::size_t) const noexcept {}
  template <Executor X, class Context>
  void stored_all(X&, const Context&) const noexcept {}

  /// Attention of the sequences of a step, `tokens` in all (block/detail/attend.hpp). context(i): the
  /// AttentionContext of sequence i; scratch(worker): its AttentionScratch memory.
  template <Kernels K, Executor X, class ContextOf, class Scratch>
  static void attend_all(X& executor, std::size_t sequences, std::size_t tokens, ContextOf&& context,
                         Scratch&& scratch) noexcept;
};

/// Query rows (tokens x heads of a group) in one task, unless a single token has more.
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
  /// Numbers that a unit with `rows` rows needs of them.
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

/// The arguments of attention in one layer. Token t of the step is at position kv.pos + kv.evicted() + t. A
/// head's query is `q_stride` numbers after that of the head before; with AttentionConfig::q_gate its gate
/// lies between them.
template <class View>
struct AttentionContext {
  const AttentionConfig& layer;
  View kv;                        // a KvView, or what derives from it
  float epsilon = 0;              // of norms
  MatrixView<float> q;            // (n, heads * q_stride)
  MatrixView<float> k = {};       // (n, kv_heads * head_dim); empty when the keys of another layer are read
  MatrixView<float> v = {};       // (n, kv_heads * head_dim)
  MatrixView<float> out;          // (n, heads * head_dim)
  const float* q_norm = nullptr;  // (head_dim)
  const float* k_norm = nullptr;  // (head_dim)
  const float* sinks = nullptr;   // (heads), with AttentionConfig::sinks
  MatrixView<const float> cos = {};  // (n, dims / 2), of a layer that rotates
  MatrixView<const float> sin = {};  // (n, dims / 2)
  kernel::RopePairs pairs = kernel::RopePairs::adjacent;
  bool fast8 = false;  // kernel::AttentionArgs::fast8

  [[nodiscard]] MatrixView<float> query(std::size_t head) const noexcept {  // (n, head_dim)
    return q.cols(head * layer.q_stride(), layer.head_dim);
  }
  [[nodiscard]] MatrixView<float> gate(std::size_t head) const noexcept {  // (n, head_dim)
    return q.cols(head * layer.q_stride() + layer.head_dim, layer.head_dim);
  }
  [[nodiscard]] float scale() const noexcept {
    return layer.attention_scale != 0 ? layer.attention_scale
                                      : 1.0f / std::sqrt(static_cast<float>(layer.head_dim));
  }
};

}  // namespace mica::block
