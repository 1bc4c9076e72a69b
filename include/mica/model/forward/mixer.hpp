// SPDX-License-Identifier: Apache-2.0
//
// What mixes the tokens of a layer: attention, or a gated delta net.
#pragma once

#include "mica/model/forward.hpp"

namespace mica::model {

template <class M>
void Forward<M>::attention(std::size_t i) noexcept {
  const arch::LayerConfig& layer = config_.layers[i];
  const LayerTensors& t = weights_.layer(i);
  project_heads(layer, t, a_.q(n_, layer.heads * layer.q_stride()), a_.k(n_, layer.kv_width()),
                a_.v(n_, layer.kv_width()));
  attend(i);
  const block::Branch b = branch(t.post_attn_norm);
  project(a_.attended(n_, layer.q_width()), t.attn.output, b.target(), b.direct(),
          vector(t.attn.output_bias));
  block::join_branch<Kernels>(executor_, b);
}

/// Brings keys and values that are not in memory, and announces those of the next layer that attends; of the first one at the end.
template <class M>
bool Forward<M>::fetch([[maybe_unused]] std::size_t i) noexcept {
  if constexpr (SpillingStorage<typename M::Storage>) {
    for (const Part& part : parts_) {
      if (!part.cache->storage.fetch(kv_layer(i))) return false;
      if (old_layer(i) != block::none && !part.cache->storage.fetch(old_layer(i))) return false;
    }
    std::size_t next = i;
    do next = (next + 1) % config_.layers.size();
    while (!config_.layers[next].attends());
    for (const Part& part : parts_) {
      part.cache->storage.prefetch(kv_layer(next));
      if (old_layer(next) != block::none) part.cache->storage.prefetch(old_layer(next));
    }
  }
  return true;
}

/// Each part attends to its own cache: all of them in one run where each has one token.
template <class M>
void Forward<M>::attend(std::size_t i) noexcept {
  const auto scratch = [&](std::size_t worker) { return a_.attention(worker); };
  if (!layout_.looks.empty() && layout_.bounded[i] != 0) {
    for (std::size_t part = 0; part < parts_.size(); ++part) attend_watched(i, part);
    return;
  }
  if (parts_.size() > 1 && n_ == parts_.size()) {
    const auto context = [&](std::size_t part) { return attention_context(i, part); };
    block::attend_each<Kernels>(executor_, parts_.size(), config_.layers[i].kv_heads, context, scratch);
    return;
  }
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    block::attend<Kernels>(executor_, attention_context(i, part), scratch);
  }
}

/// And adds up what its queries look at.
template <class M>
void Forward<M>::attend_watched(std::size_t i, std::size_t part) noexcept {
  auto& cache = *parts_[part].cache;
  auto context = attention_context(i, part);
  const std::size_t heads = config_.layers[i].heads;
  context.looks = {layout_.looks.data(), context.q.rows() * heads, layout_.looks_width};
  block::attend<Kernels>(executor_, context, [&](std::size_t worker) { return a_.attention(worker); });
  block::add_shares(executor_, context.looks, heads, [&](std::size_t token) {
    const std::size_t seen = ceil_div(context.pos + token + 1, format::tile_tokens);
    return cache.held.mass(cache.tokens + token).first(seen);
  });
}

template <class M>
auto Forward<M>::attention_context(std::size_t i, std::size_t part) noexcept {
  const arch::LayerConfig& layer = config_.layers[i];
  const LayerTensors& t = weights_.layer(i);
  const Rows rows = rows_of(part);
  const auto own = [rows](View all) { return all.rows(rows.first, rows.count); };
  block::AttentionContext<Elements, typename M::Storage> context{
      .layer = layer,
      .cache_layer = kv_layer(i),
      .old_layer = old_layer(i),
      .pos = parts_[part].cache->tokens,
      .epsilon = config_.norm_epsilon,
      .q = own(a_.q(n_, layer.heads * layer.q_stride())),
      .k = own(a_.k(n_, layer.kv_width())),
      .v = own(a_.v(n_, layer.kv_width())),
      .out = own(a_.attended(n_, layer.q_width())),
      .q_norm = vector(t.attn.q_norm),
      .k_norm = vector(t.attn.k_norm),
      .sinks = vector(t.attn.sinks),
      .elements = elements_,
      .cache = parts_[part].cache->storage};
  if (layout_.bounded[i] != 0) {
    const auto& held = parts_[part].cache->held;
    context.gone = held.gone();
    context.pos -= context.gone;
    context.places = held.places();
  }
  if (layer.rotates()) {
    context.cos = own(a_.cos(layer.rope, n_));
    context.sin = own(a_.sin(layer.rope, n_));
    context.pairs = config_.ropes[layer.rope].pairs;
  }
  return context;
}

template <class M>
void Forward<M>::project_heads(const arch::LayerConfig& layer, const LayerTensors& t, View q, View k,
                               View v) noexcept {
  const Matrix wq = matrix(t.attn.q), wk = matrix(t.attn.k), wv = matrix(t.attn.v);
  const auto x = norm(residual_, vector(t.attn_norm), wants_codes(wq, wk, wv));
  std::array<Product, 3> products{Product{wq, q, false, vector(t.attn.q_bias)}};
  std::size_t count = 1;
  observe(t.attn.q, x.values);
  if (layer.stores_kv()) {
    products[count++] = {wk, k, false, vector(t.attn.k_bias)};
    observe(t.attn.k, x.values);
  }
  if (layer.stores_kv() && !layer.v_from_k) {
    products[count++] = {wv, v, false, vector(t.attn.v_bias)};
    observe(t.attn.v, x.values);
  }
  block::project<Kernels>(executor_, x, std::span<const Product>(products).first(count));
  if (!layer.stores_kv() || !layer.v_from_k) return;
  executor_.run(n_, [&](std::size_t row, std::size_t) noexcept {
    std::copy(k[row].begin(), k[row].end(), v[row].begin());
  });
}

template <class M>
void Forward<M>::delta_net(std::size_t i) noexcept {
  const block::DeltaNetConfig& d = config_.layers[i].delta_net;
  const LayerTensors& t = weights_.layer(i);
  const DeltaNetTensors& w = t.delta_net;
  const View mixed = a_.gate(n_, d.channels()), convolved = a_.up(n_, d.channels());
  const View gate = a_.q(n_, d.v_width()), out = a_.attended(n_, d.v_width());
  const View fused = a_.k(n_, 2 * d.v_heads), gates = a_.v(n_, 2 * d.v_heads);
  const View alpha = gates.cols(0, d.v_heads), beta = gates.cols(d.v_heads, d.v_heads);
  const Matrix qkv = matrix(w.qkv), wg = matrix(w.gate);
  const auto x = norm(residual_, vector(t.attn_norm), wants_codes(qkv, wg));
  for (const TensorRef& ref : {w.qkv, w.gate, w.fused_gates, w.alpha, w.beta}) observe(ref, x.values);
  // Gates decide what a state keeps for all tokens to come: they are few, and not rounded.
  const auto in_floats = [this](const TensorRef& ref, View y) {
    return Product{matrix(ref), y, false, nullptr, true};
  };
  if (d.fused_gates) {
    block::project<Kernels>(
        executor_, x, std::array{Product{qkv, mixed}, Product{wg, gate}, in_floats(w.fused_gates, fused)});
  } else {
    block::project<Kernels>(executor_, x,
                            std::array{Product{qkv, mixed}, Product{wg, gate}, in_floats(w.alpha, alpha),
                                       in_floats(w.beta, beta)});
  }
  if (d.fused_gates) split_gates(d, fused, alpha, beta);
  const block::DeltaNetContext context{.config = d,
                                       .epsilon = config_.norm_epsilon,
                                       .mixed = mixed,
                                       .convolved = convolved,
                                       .gate = gate,
                                       .alpha = alpha,
                                       .beta = beta,
                                       .out = out,
                                       .conv_weight = vector(w.conv),
                                       .a = vector(w.a),
                                       .dt = vector(w.dt),
                                       .norm = vector(w.norm)};
  block::delta_net<Kernels>(executor_, context, parts_.size(), [&](std::size_t part) {
    float* const state = parts_[part].cache->state.data() + layout_.state_at[i];
    const View conv(state, d.taps - 1, d.channels());
    const View heads(state + (d.taps - 1) * d.channels(), d.v_heads * d.k_dim, d.v_dim);
    const Rows rows = rows_of(part);
    return block::DeltaNetPart{{conv, heads}, rows.first, rows.count};
  });
  const block::Branch b = branch(t.post_attn_norm);
  project(out, w.output, b.target(), b.direct());
  block::join_branch<Kernels>(executor_, b);
}

/// Of each key head: beta of its value heads, then alpha of them.
template <class M>
void Forward<M>::split_gates(const block::DeltaNetConfig& d, View fused, View alpha, View beta) noexcept {
  const std::size_t share = d.v_heads / d.k_heads;
  for (std::size_t row = 0; row < n_; ++row) {
    for (std::size_t head = 0; head < d.v_heads; ++head) {
      const std::size_t at = head / share * 2 * share + head % share;
      beta[row][head] = fused[row][at];
      alpha[row][head] = fused[row][at + share];
    }
  }
}

}  // namespace mica::model
