// SPDX-License-Identifier: Apache-2.0
//
// The work on queries, keys and values before attention: norms, rotation, and the store to the cache.
#pragma once

#include "mica/block/detail/attention_context.hpp"

#include <cmath>
#include <cstddef>

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
  for (std::size_t t = first; t < last; ++t) {
    const std::size_t at = c.kv.pos + t, slot = at % format::tile_tokens;
    std::byte* const tile = c.kv.storage.run(c.kv.layer, kv_head, c.kv.place(at / format::tile_tokens)).data;
    elements.visit_keys([&](auto e) { decltype(e)::type::store_key(tile, slot, d, k[t].data()); });
    elements.visit_values(
        [&](auto e) { decltype(e)::type::store_value(tile + value_offset, slot, d, v[t].data()); });
  }
}

/// Stores all tokens of a step, of one KV head.
template <Kernels K, class Context>
void store_whole_head(const Context& c, std::size_t kv_head) noexcept {
  store_head<K>(c, kv_head, 0, c.q.rows());
  c.kv.stored_head(c, kv_head);
}

}  // namespace mica::block
