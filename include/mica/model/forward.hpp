// SPDX-License-Identifier: Apache-2.0
//
// One step's walk through the layers. A Forward refers to the parts of a Transformer and owns nothing; it lives for one
// step. What a layer does is read from its LayerConfig, so that every family goes this way:
//
//   residual += post_norm(mixer(norm(residual)))        mixer: attention or a gated delta net
//   residual += post_norm(ffn(norm(residual)))          ffn: a dense block, a mixture of experts, or both
//   residual += norm(proj(act(gate(residual)) * e_i))   where layers have embeddings of their own
//
// With several residual streams (block/altup.hpp) the first is the one above; the others are predicted before a layer's blocks
// and corrected after them, and it is they who get the embedding.
#pragma once

#include "mica/arch/config.hpp"
#include "mica/base/token_id.hpp"
#include "mica/block/altup.hpp"
#include "mica/block/attention.hpp"
#include "mica/block/delta_net.hpp"
#include "mica/block/experts.hpp"
#include "mica/block/feed_forward.hpp"
#include "mica/block/linear.hpp"
#include "mica/block/norm.hpp"
#include "mica/model/activations.hpp"
#include "mica/model/observer.hpp"
#include "mica/model/weights.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <span>

namespace mica::model {

/// Where the caches of a step are.
template <class Storage>
struct StepCache {
  const Storage& storage;
  float* state;                           // of recurrent layers
  std::span<const std::size_t> kv_index;  // by layer: its place in the storage
  std::span<const std::size_t> state_at;  // by layer: where its state begins
  std::size_t pos;                        // tokens before this step
};

/// Model: a BasicTransformer, for its types.
template <class Model>
class Forward {
  using Formats = typename Model::Formats;
  using Kernels = typename Model::Kernels;
  using Executor = typename Model::Executor;
  using Pager = typename Model::Pager;
  using Elements = typename Model::Elements;
  using Observer = typename Model::Observer;
  using Matrix = tensor::AnyMatrix<Formats>;
  using Product = block::Product<Formats>;
  using View = MatrixView<float>;

 public:
  Forward(const arch::Config& config, const Weights<Formats>& weights, Pager& pager, Executor& executor,
          Activations<typename Model::Allocator>& activations, const Elements& elements, Observer* observer,
          StepCache<typename Model::Storage> cache, std::size_t n) noexcept
      : config_(config),
        weights_(weights),
        pager_(pager),
        executor_(executor),
        a_(activations),
        elements_(elements),
        observer_(observer),
        cache_(cache),
        n_(n),
        residual_(activations.residual(n, config.width)) {}

  /// Embeddings into the residual stream.
  void embed(std::span<const TokenId> tokens) noexcept;
  /// Layer i, whose group is held. False when an expert could not be read.
  [[nodiscard]] bool run(std::size_t i) noexcept;

 private:
  [[nodiscard]] Matrix matrix(const TensorRef& ref) const noexcept {
    if (!ref.present()) return {};
    return Weights<Formats>::matrix(ref, pager_.data(ref.index));
  }
  [[nodiscard]] const float* vector(const TensorRef& ref) const noexcept {
    return ref.present() ? reinterpret_cast<const float*>(pager_.data(ref.index)) : nullptr;
  }
  void observe(const TensorRef& ref, MatrixView<const float> x, std::size_t expert = no_expert) noexcept {
    if constexpr (Observer::active) {
      if (observer_ != nullptr && ref.present()) observer_->product(weights_.name(ref.index), x, expert);
    }
  }
  [[nodiscard]] kernel::Input norm(MatrixView<const float> x, const float* weight, bool quantized) noexcept {
    return block::norm<Kernels>(executor_, x, weight, config_.norm_epsilon, a_.normed(n_, config_.width),
                                a_.codes(n_, config_.width), quantized);
  }
  /// y (+)= x W^T + bias for one product of rows that are not normed.
  void project(View x, const TensorRef& w, View y, bool add, const float* bias = nullptr) noexcept {
    observe(w, x);
    const Matrix m = matrix(w);
    const auto input = block::quantize<Kernels>(executor_, x, a_.codes(n_, x.cols()), block::wants_codes(m));
    block::project<Kernels>(executor_, input, std::array{Product{m, y, add, bias}});
  }
  /// The branch that a block's output takes; finish it with join_branch.
  [[nodiscard]] block::Branch branch(const TensorRef& post_norm) noexcept {
    block::Branch b{residual_, {}, vector(post_norm), config_.norm_epsilon, config_.residual_scale};
    if (!b.direct()) b.scratch = a_.branch(n_, config_.width);
    return b;
  }
  void scale(View x, float factor) noexcept {
    executor_.run(x.rows(), [&](std::size_t row, std::size_t) noexcept {
      Kernels::scale(kernel::ScaleArgs{x, factor, row, row + 1});
    });
  }
  void fill_with_zeros(View x) noexcept {
    executor_.run(x.rows(), [&](std::size_t row, std::size_t) noexcept {
      std::fill(x[row].begin(), x[row].end(), 0.0f);
    });
  }

  void embed_per_layer(std::span<const TokenId> tokens) noexcept;
  void attention(std::size_t i) noexcept;
  void project_heads(const arch::LayerConfig& layer, const LayerTensors& t, View q, View k, View v) noexcept;
  void delta_net(std::size_t i) noexcept;
  void split_gates(const block::DeltaNetConfig& d, View fused, View alpha, View beta) noexcept;
  [[nodiscard]] bool feed_forward(std::size_t i) noexcept;
  void dense(const arch::LayerConfig& layer, const FeedForwardTensors& t, std::size_t ff_width,
             const kernel::Input& x, View y, bool add) noexcept;
  [[nodiscard]] bool experts(std::size_t i, const kernel::Input& x, View y) noexcept;
  void route(std::size_t i, MatrixView<const float> x, const block::ExpertRows& rows) noexcept;
  void shared_expert(std::size_t i, const kernel::Input& x, View y) noexcept;
  [[nodiscard]] bool experts_beside_dense(std::size_t i, const block::Branch& b) noexcept;
  void per_layer(std::size_t i) noexcept;
  [[nodiscard]] View per_layer_input(std::size_t i) noexcept;

  [[nodiscard]] View streams() noexcept { return a_.streams(n_, config_.streams * config_.width); }
  void split_streams() noexcept;
  [[nodiscard]] View stream_coefficients(const AltUpTensors& t, const TensorRef& of) noexcept;
  void laurel(const LaurelTensors& t) noexcept;
  void merge_streams() noexcept;

  const arch::Config& config_;
  const Weights<Formats>& weights_;
  Pager& pager_;
  Executor& executor_;
  Activations<typename Model::Allocator>& a_;
  const Elements& elements_;
  Observer* observer_;
  StepCache<typename Model::Storage> cache_;
  std::size_t n_;
  View residual_;  // (n, width)
};

template <class M>
void Forward<M>::embed(std::span<const TokenId> tokens) noexcept {
  matrix(weights_.token_embd()).visit([&](auto w) {
    for (std::size_t t = 0; t < n_; ++t) w.decode_row(tokens[t], residual_[t].data());
  });
  if (config_.embedding_scale != 1) scale(residual_, config_.embedding_scale);
  if (config_.per_layer_width != 0) embed_per_layer(tokens);
  if (config_.streams > 1) split_streams();
}

/// e_i = (RMSNorm(P_i x / sqrt(width)) * norm + sqrt(p) E_i[token]) / sqrt(2), for every layer i.
template <class M>
void Forward<M>::embed_per_layer(std::span<const TokenId> tokens) noexcept {
  const std::size_t p = config_.per_layer_width, layers = config_.layers.size();
  const View all = a_.per_layer(n_, layers * p), each(all.data(), n_ * layers, p);
  project(residual_, weights_.per_layer_proj(), all, false);
  scale(all, 1.0f / std::sqrt(static_cast<float>(config_.width)));
  const float* const weight = vector(weights_.per_layer_norm());
  const float embedding_scale = std::sqrt(static_cast<float>(p));
  executor_.run(n_, [&](std::size_t t, std::size_t) noexcept {
    const std::size_t first = t * layers, last = first + layers;
    Kernels::rms_norm(kernel::RmsNormArgs{each, weight, config_.norm_epsilon, each, first, last});
    matrix(weights_.per_layer_embd()).visit([&](auto w) {
      using F = typename decltype(w)::Format;
      const auto* const row = w.row(tokens[t]);
      float values[F::block_size];
      for (std::size_t i = 0; i < layers * p; ++i) {
        if (i % F::block_size == 0) F::decode(row[i / F::block_size], values);
        all[t][i] = std::fma(values[i % F::block_size], embedding_scale, all[t][i]);
      }
    });
    Kernels::scale(kernel::ScaleArgs{all, 1.0f / std::sqrt(2.0f), t, t + 1});
  });
}

template <class M>
bool Forward<M>::run(std::size_t i) noexcept {
  const LayerTensors& t = weights_.layer(i);
  const bool streamed = config_.streams > 1;
  if (streamed) {
    block::predict_streams(executor_, residual_, streams(), stream_coefficients(t.altup, t.altup.predict));
  }
  if (config_.layers[i].attends()) {
    attention(i);
  } else {
    delta_net(i);
  }
  if (t.laurel.down.present()) laurel(t.laurel);
  if (!feed_forward(i)) return false;
  if (streamed) {
    block::correct_streams(executor_, residual_, streams(), stream_coefficients(t.altup, t.altup.correct));
  }
  if (config_.per_layer_width != 0) per_layer(i);
  if (t.output_scale.present()) scale(residual_, *vector(t.output_scale));
  if constexpr (Observer::active) {
    if (observer_ != nullptr) observer_->layer(i, residual_);
  }
  if (streamed && i + 1 == config_.layers.size()) merge_streams();
  return true;
}

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
  const Matrix qkv = matrix(w.qkv), wg = matrix(w.gate), wf = matrix(w.fused_gates);
  const Matrix wa = matrix(w.alpha), wb = matrix(w.beta);
  const auto x = norm(residual_, vector(t.attn_norm), block::wants_codes(qkv, wg, wf, wa, wb));
  for (const TensorRef& ref : {w.qkv, w.gate, w.fused_gates, w.alpha, w.beta}) observe(ref, x.values);
  std::array<Product, 4> products{Product{qkv, mixed}, Product{wg, gate}, Product{wa, alpha},
                                  Product{wb, beta}};
  if (d.fused_gates) products[2] = {wf, fused};
  block::project<Kernels>(executor_, x, std::span<const Product>(products).first(d.fused_gates ? 3 : 4));
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

template <class M>
bool Forward<M>::feed_forward(std::size_t i) noexcept {
  const arch::LayerConfig& layer = config_.layers[i];
  const LayerTensors& t = weights_.layer(i);
  const block::Branch b = branch(t.post_ffn_norm);
  if (layer.experts.beside_dense) {
    if (!experts_beside_dense(i, b)) return false;
  } else if (layer.experts.count == 0) {
    const auto x =
        norm(residual_, vector(t.ffn_norm), block::wants_codes(matrix(t.ffn.gate), matrix(t.ffn.up)));
    dense(layer, t.ffn, layer.ff_width, x, b.target(), b.direct());
  } else {
    const ExpertsTensors& e = t.experts;
    const auto x =
        norm(residual_, vector(t.ffn_norm),
             block::wants_codes(matrix(e.router), matrix(e.gate.first), matrix(e.up.first),
                                matrix(e.shared.gate), matrix(e.shared.up), matrix(e.shared_router)));
    if (!b.direct()) fill_with_zeros(b.scratch);
    route(i, x.values, a_.experts(n_, config_.width, layer.experts).rows);
    if (!experts(i, x, b.target())) return false;
    if (layer.experts.shared_ff_width != 0) shared_expert(i, x, b.target());
  }
  block::join_branch<Kernels>(executor_, b);
  return true;
}

template <class M>
void Forward<M>::dense(const arch::LayerConfig& layer, const FeedForwardTensors& t, std::size_t ff_width,
                       const kernel::Input& x, View y, bool add) noexcept {
  const block::FeedForward<Formats> f{.gate = matrix(t.gate),
                                      .up = matrix(t.up),
                                      .down = matrix(t.down),
                                      .kind = layer.gate,
                                      .sparsity = layer.sparsity,
                                      .gate_out = a_.gate(n_, ff_width),
                                      .up_out = a_.up(n_, ff_width),
                                      .hidden_codes = a_.codes(n_, ff_width),
                                      .gate_bias = vector(t.gate_bias),
                                      .up_bias = vector(t.up_bias),
                                      .down_bias = vector(t.down_bias)};
  observe(t.gate, x.values);
  observe(t.up, x.values);
  block::feed_forward_in<Kernels>(executor_, f, x);
  observe(t.down, f.gate_out);
  block::feed_forward_out<Kernels>(executor_, f, y, add);
}

/// Chooses the experts of every token; x: what the router reads, with the codes of a_.codes() where it wants them.
template <class M>
void Forward<M>::route(std::size_t i, MatrixView<const float> x, const block::ExpertRows& rows) noexcept {
  const block::ExpertsConfig& config = config_.layers[i].experts;
  const ExpertsTensors& t = weights_.layer(i).experts;
  const View logits = a_.router(n_, config.count);
  const Matrix router = matrix(t.router);
  observe(t.router, x);
  block::project<Kernels>(executor_, kernel::Input{x, a_.codes(n_, config_.width)},
                          std::array{Product{router, logits, false, vector(t.router_bias)}});
  const float* const scale = vector(t.weight_scale);
  executor_.run(n_, [&](std::size_t row, std::size_t) noexcept {
    block::choose_experts(config, logits[row], scale, rows.choices.subspan(row * config.used, config.used));
  });
  block::ExpertRows sorted = rows;
  sorted.sort(config.used);
}

/// y += the experts that route() chose.
template <class M>
bool Forward<M>::experts(std::size_t i, const kernel::Input& x, View y) noexcept {
  const arch::LayerConfig& layer = config_.layers[i];
  const ExpertsTensors& t = weights_.layer(i).experts;
  struct Source {
    Forward& f;
    const ExpertsTensors& t;
    const block::ExpertsConfig& config;
    [[nodiscard]] bool acquire(std::size_t e) noexcept { return f.pager_.acquire(t.first_group + e); }
    void release(std::size_t e) noexcept { f.pager_.release(t.first_group + e); }
    [[nodiscard]] block::Expert<Formats> expert(std::size_t e) noexcept {
      const auto bias = [&](const TensorRef& ref, std::size_t n) {
        const float* const all = f.vector(ref);
        return all == nullptr ? nullptr : all + e * n;
      };
      return {f.matrix(t.gate.expert(e)),       f.matrix(t.up.expert(e)),
              f.matrix(t.down.expert(e)),       bias(t.gate_bias, config.ff_width),
              bias(t.up_bias, config.ff_width), bias(t.down_bias, f.config_.width)};
    }
    void inputs(std::size_t e, MatrixView<const float> rows) noexcept {
      f.observe(t.gate.first, rows, e);
      f.observe(t.up.first, rows, e);
    }
    void hidden(std::size_t e, MatrixView<const float> rows) noexcept { f.observe(t.down.first, rows, e); }
  } source{*this, t, layer.experts};
  const block::ExpertsContext<Source> context{
      .config = layer.experts,
      .gate = layer.gate,
      .x = x,
      .quantized_input = block::wants_codes(matrix(t.gate.first), matrix(t.up.first)),
      .quantized_hidden = block::wants_codes(matrix(t.down.first)),
      .observed = Observer::active,
      .scratch = a_.experts(n_, config_.width, layer.experts),
      .source = source,
      .y = y};
  return block::run_experts<Kernels, Formats>(executor_, context);
}

/// y += the expert that every token uses, by its gate where it has one.
template <class M>
void Forward<M>::shared_expert(std::size_t i, const kernel::Input& x, View y) noexcept {
  const arch::LayerConfig& layer = config_.layers[i];
  const ExpertsTensors& t = weights_.layer(i).experts;
  if (!layer.experts.shared_gate) {
    dense(layer, t.shared, layer.experts.shared_ff_width, x, y, true);
    return;
  }
  const View gate = a_.router(n_, 1), out = a_.attended(n_, config_.width);
  observe(t.shared_router, x.values);
  block::project<Kernels>(executor_, x, std::array{Product{matrix(t.shared_router), gate}});
  dense(layer, t.shared, layer.experts.shared_ff_width, x, out, false);
  executor_.run(n_, [&](std::size_t row, std::size_t) noexcept {
    Kernels::add(kernel::AddArgs{out, y, kernel::sigmoid(gate[row][0]), row, row + 1});
  });
}

/// Gemma 4: scratch = RMSNorm(dense(norm(x))) + RMSNorm(experts(norm_2(x))), the router reading x in its own way.
template <class M>
bool Forward<M>::experts_beside_dense(std::size_t i, const block::Branch& b) noexcept {
  const arch::LayerConfig& layer = config_.layers[i];
  const LayerTensors& t = weights_.layer(i);
  const ExpertsTensors& e = t.experts;
  const View sum = b.scratch, out = a_.attended(n_, config_.width);
  const auto x =
      norm(residual_, vector(t.ffn_norm), block::wants_codes(matrix(t.ffn.gate), matrix(t.ffn.up)));
  dense(layer, t.ffn, layer.ff_width, x, sum, false);
  const auto routed = norm(residual_, vector(e.router_scale), false);
  const View reads = a_.normed(n_, config_.width);
  scale(reads, 1.0f / std::sqrt(static_cast<float>(config_.width)));
  block::quantize<Kernels>(executor_, reads, a_.codes(n_, config_.width),
                           block::wants_codes(matrix(e.router)));
  route(i, routed.values, a_.experts(n_, config_.width, layer.experts).rows);
  const auto in =
      norm(residual_, vector(t.experts_norm), block::wants_codes(matrix(e.gate.first), matrix(e.up.first)));
  fill_with_zeros(out);
  if (!experts(i, in, out)) return false;
  executor_.run(n_, [&](std::size_t row, std::size_t) noexcept {
    const float epsilon = config_.norm_epsilon;
    Kernels::rms_norm(kernel::RmsNormArgs{sum, vector(t.dense_post_norm), epsilon, sum, row, row + 1});
    Kernels::rms_norm(kernel::RmsNormArgs{out, vector(t.experts_post_norm), epsilon, out, row, row + 1});
    Kernels::add(kernel::AddArgs{out, sum, 1, row, row + 1});
  });
  return true;
}

template <class M>
void Forward<M>::per_layer(std::size_t i) noexcept {
  const PerLayerTensors& t = weights_.layer(i).per_layer;
  const std::size_t p = config_.per_layer_width;
  const View gate = a_.gate(n_, p);
  const View own = a_.per_layer(n_, config_.layers.size() * p).cols(i * p, p);  // (n, p)
  project(per_layer_input(i), t.gate, gate, false);
  executor_.run(n_, [&](std::size_t row, std::size_t) noexcept {
    Kernels::gated(kernel::GatedArgs{config_.layers[i].gate, gate, own, gate, row, row + 1});
  });
  const block::Branch b = branch(t.norm);
  project(gate, t.proj, b.target(), b.direct());
  if (config_.streams > 1) {
    block::join_streams<Kernels>(executor_, b, streams());
  } else {
    block::join_branch<Kernels>(executor_, b);
  }
}

/// What a layer's own embedding is gated by: the residual stream, scaled where there are several.
template <class M>
MatrixView<float> Forward<M>::per_layer_input(std::size_t i) noexcept {
  const float* const factors = vector(weights_.layer(i).altup.scale);
  if (factors == nullptr) return residual_;
  const View scaled = a_.normed(n_, config_.width);
  executor_.run(n_, [&](std::size_t row, std::size_t) noexcept {
    const auto x = residual_[row];
    std::transform(x.begin(), x.end(), factors, scaled[row].begin(), std::multiplies<>());
  });
  return scaled;
}

/// The other streams begin as projections of the first, as long as it is.
template <class M>
void Forward<M>::split_streams() noexcept {
  const std::size_t width = config_.width;
  const View all = streams();
  project(residual_, weights_.streams_in(), all.cols(width, all.cols() - width), false);
  for (std::size_t s = 1; s < config_.streams; ++s) {
    block::match_magnitude(executor_, residual_, all.cols(s * width, width));
  }
}

/// `of` times m, which the router makes of the residual stream.
template <class M>
MatrixView<float> Forward<M>::stream_coefficients(const AltUpTensors& t, const TensorRef& of) noexcept {
  const View m = a_.modalities(n_, config_.streams), out = a_.coefficients(n_, of.rows);
  const Matrix router = matrix(t.router);
  const auto x = norm(residual_, vector(t.router_norm), block::wants_codes(router));
  observe(t.router, x.values);
  block::project<Kernels>(executor_, x, std::array{Product{router, m}});
  block::modalities(executor_, m, config_.width);
  project(m, of, out, false);
  return out;
}

/// residual = (residual + y + RMSNorm(up(down(y)))) / sqrt(2), where y went into the attention before, and is still there.
template <class M>
void Forward<M>::laurel(const LaurelTensors& t) noexcept {
  const View y = a_.normed(n_, config_.width), low = a_.gate(n_, t.down.rows);
  project(y, t.down, low, false);
  const block::Branch b = branch(t.norm);
  project(low, t.up, b.target(), b.direct());
  block::join_branch<Kernels>(executor_, b);
  executor_.run(n_, [&](std::size_t row, std::size_t) noexcept {
    Kernels::add(kernel::AddArgs{y, residual_, 1, row, row + 1});
  });
  scale(residual_, 1.0f / std::sqrt(2.0f));
}

/// residual = the mean of the streams, the others projected and as long as the first.
template <class M>
void Forward<M>::merge_streams() noexcept {
  const std::size_t width = config_.width;
  const View first = streams().cols(0, width), out = a_.branch(n_, width);
  for (std::size_t s = 1; s < config_.streams; ++s) {
    TensorRef w = weights_.streams_out();
    w.rows = width;
    w.first_row = (s - 1) * width;
    project(streams().cols(s * width, width), w, out, false);
    block::match_magnitude(executor_, first, out);
    executor_.run(n_, [&](std::size_t row, std::size_t) noexcept {
      Kernels::add(kernel::AddArgs{out, residual_, 1, row, row + 1});
    });
  }
  scale(residual_, 1.0f / static_cast<float>(config_.streams));
}

}  // namespace mica::model
