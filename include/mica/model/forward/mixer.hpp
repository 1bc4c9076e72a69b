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
  const View q = a_.q(n_, layer.heads * layer.q_stride());
  const View k = a_.k(n_, layer.kv_width()), v = a_.v(n_, layer.kv_width());
  const View attended = a_.attended(n_, layer.q_width());
  project_heads(layer, t, q, k, v);
  const std::size_t source = layer.stores_kv() ? i : layer.kv_source;
  block::AttentionContext<Elements, typename M::Storage> context{.layer = layer,
                                                                 .cache_layer = cache_.kv_index[source],
                                                                 .pos = cache_.pos,
                                                                 .epsilon = config_.norm_epsilon,
                                                                 .q = q,
                                                                 .k = k,
                                                                 .v = v,
                                                                 .out = attended,
                                                                 .q_norm = vector(t.attn.q_norm),
                                                                 .k_norm = vector(t.attn.k_norm),
                                                                 .sinks = vector(t.attn.sinks),
                                                                 .elements = elements_,
                                                                 .cache = cache_.storage};
  if (layer.rotates()) {
    context.cos = a_.cos(layer.rope, n_);
    context.sin = a_.sin(layer.rope, n_);
    context.pairs = config_.ropes[layer.rope].pairs;
  }
  block::attend<Kernels>(executor_, context, [&](std::size_t worker) { return a_.attention(worker); });
  const block::Branch b = branch(t.post_attn_norm);
  project(attended, t.attn.output, b.target(), b.direct(), vector(t.attn.output_bias));
  block::join_branch<Kernels>(executor_, b);
}

template <class M>
void Forward<M>::project_heads(const arch::LayerConfig& layer, const LayerTensors& t, View q, View k,
                               View v) noexcept {
  const Matrix wq = matrix(t.attn.q), wk = matrix(t.attn.k), wv = matrix(t.attn.v);
  const auto x = norm(residual_, vector(t.attn_norm), block::wants_codes(wq, wk, wv));
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
  const auto x = norm(residual_, vector(t.attn_norm), block::wants_codes(qkv, wg));
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
  float* const state = cache_.state + cache_.state_at[i];
  const View conv(state, d.taps - 1, d.channels());
  const View heads(state + (d.taps - 1) * d.channels(), d.v_heads * d.k_dim, d.v_dim);
  block::delta_net<Kernels>(executor_, block::DeltaNetContext{.config = d,
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
                                                              .norm = vector(w.norm),
                                                              .state = {conv, heads}});
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
