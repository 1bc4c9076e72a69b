// SPDX-License-Identifier: Apache-2.0
//
// How attention sees the keys and values of one sequence in one layer: its tiles in their order, and their
// element. The plain view is here. Others derive from it, and the policies of a model choose
// (model/detail/kv_layout.hpp):
//
//   KvView        every token is resident, in one element
//   EvictedView   some tokens were evicted, others follow them     block/detail/scored_view.hpp
//   ScoredView    and an eviction policy needs attention scores    block/detail/scored_view.hpp
//   AgedView<V>   one of these whose old tokens have elements of their own    block/detail/aged_view.hpp
#pragma once

#include "mica/exec/concept.hpp"
#include "mica/kernel/concept.hpp"
#include "mica/kv/concept.hpp"
#include "mica/kv/elements.hpp"

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

}  // namespace mica::block
