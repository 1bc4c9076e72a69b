// SPDX-License-Identifier: Apache-2.0
//
// One step's walk through the layers. A Forward refers to the parts of a Transformer and owns nothing; it lives for one
// step. What a layer does is read from its LayerConfig, so that every family goes this way:
//
//   residual += post_norm(mixer(norm(residual)))        mixer: attention or a gated delta net
//   residual += post_norm(ffn(norm(residual)))          ffn: a dense block, a mixture of experts, or both
//   residual += norm(proj(act(gate(residual)) * e_i))   where layers have embeddings of their own
//
// The parts are in model/forward/: mixer, experts, streams.
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
#include "mica/model/part.hpp"
#include "mica/model/weights.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

namespace mica::model {

/// Where layers keep what they keep of a sequence.
struct CacheLayout {
  std::span<const std::size_t> kv_index;   // by layer: its place in the storage
  std::span<const std::size_t> old_index;  // by layer: the place of its old tiles; block::none: it has none
  std::span<const std::size_t> state_at;   // by layer: where its state begins
  std::span<const std::uint8_t> bounded;   // by layer: whether the room for its keys and values is
  std::span<float> looks = {};  // scratch of an eviction policy that watches: (64 * heads, looks_width)
  std::size_t looks_width = 0;
};

/// The rows of a step that are one sequence's.
struct Rows {
  std::size_t first = 0;
  std::size_t count = 0;
};

/// Model: a BasicTransformer, for its types. first_row: of the step, where the rows of these parts begin.
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
  using Part = model::Part<typename Model::Cache>;

 public:
  Forward(const arch::Config& config, const Weights<Formats>& weights, Pager& pager, Executor& executor,
          Activations<typename Model::Allocator>& activations, const Elements& elements, Observer* observer,
          CacheLayout layout, std::span<const Part> parts, std::size_t first_row) noexcept
      : config_(config),
        weights_(weights),
        pager_(pager),
        executor_(executor),
        a_(activations),
        elements_(elements),
        observer_(observer),
        layout_(layout),
        parts_(parts),
        n_(rows_before(parts, parts.size())),
        residual_(activations.residual(first_row + n_, config.width).rows(first_row, n_)) {}

  /// Rows of the parts before part `end`.
  [[nodiscard]] static std::size_t rows_before(std::span<const Part> parts, std::size_t end) noexcept {
    std::size_t rows = 0;
    for (const Part& part : parts.first(end)) rows += part.tokens.size();
    return rows;
  }
  /// Embeddings into the residual stream.
  void embed() noexcept;
  /// Layer i, whose group is held. False when an expert, or a part's keys and values, could not be read.
  [[nodiscard]] bool run(std::size_t i) noexcept;

 private:
  [[nodiscard]] Matrix matrix(const TensorRef& ref) const noexcept {
    if (!ref.present()) return {};
    return Weights<Formats>::matrix(ref, pager_.data(ref.index), pager_.packed(ref.index));
  }
  [[nodiscard]] const float* vector(const TensorRef& ref) const noexcept {
    if (!ref.present()) return nullptr;
    return reinterpret_cast<const float*>(pager_.data(ref.index) + ref.byte_offset());
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
  /// Whether products of the model's width with any of the matrices read codes.
  template <class... Matrices>
  [[nodiscard]] bool wants_codes(const Matrices&... w) const noexcept {
    return block::wants_codes(a_.codes(n_, config_.width), w...);
  }
  /// y (+)= x W^T + bias for one product of rows that are not normed.
  void project(View x, const TensorRef& w, View y, bool add, const float* bias = nullptr) noexcept {
    observe(w, x);
    const Matrix m = matrix(w);
    const auto codes = a_.codes(n_, x.cols());
    const auto input = block::quantize<Kernels>(executor_, x, codes, block::wants_codes(codes, m));
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

  [[nodiscard]] Rows rows_of(std::size_t part) const noexcept {
    return {rows_before(parts_, part), parts_[part].tokens.size()};
  }
  [[nodiscard]] TokenId token_of(std::size_t row) const noexcept {
    const Part* part = parts_.data();
    for (; row >= part->tokens.size(); ++part) row -= part->tokens.size();
    return part->tokens[row];
  }

  void embed_per_layer() noexcept;
  [[nodiscard]] auto attention_context(std::size_t i, std::size_t part) noexcept;
  /// The layer whose keys and values a layer reads.
  [[nodiscard]] std::size_t kv_source(std::size_t i) const noexcept {
    const arch::LayerConfig& layer = config_.layers[i];
    return layer.stores_kv() ? i : layer.kv_source;
  }
  [[nodiscard]] std::size_t kv_layer(std::size_t i) const noexcept { return layout_.kv_index[kv_source(i)]; }
  [[nodiscard]] std::size_t old_layer(std::size_t i) const noexcept {
    return layout_.old_index[kv_source(i)];
  }
  [[nodiscard]] bool fetch(std::size_t i) noexcept;
  void attend(std::size_t i) noexcept;
  void attend_watched(std::size_t i, std::size_t part) noexcept;
  void attention(std::size_t i) noexcept;
  void project_heads(const arch::LayerConfig& layer, const LayerTensors& t, View q, View k, View v) noexcept;
  void delta_net(std::size_t i) noexcept;
  void split_gates(const block::DeltaNetConfig& d, View fused, View alpha, View beta) noexcept;
  [[nodiscard]] bool feed_forward(std::size_t i) noexcept;
  void dense(const arch::LayerConfig& layer, const FeedForwardTensors& t, std::size_t ff_width,
             const kernel::Input& x, View y, bool add) noexcept;
  [[nodiscard]] bool experts(std::size_t i, const kernel::Input& x, View y) noexcept;
  struct ExpertSource;
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
  CacheLayout layout_;
  std::span<const Part> parts_;
  std::size_t n_;  // rows of all parts
  View residual_;  // (n, width)
};

template <class M>
void Forward<M>::embed() noexcept {
  matrix(weights_.token_embd()).visit([&](auto w) {
    for (std::size_t t = 0; t < n_; ++t) w.decode_row(token_of(t), residual_[t].data());
  });
  if (config_.embedding_scale != 1) scale(residual_, config_.embedding_scale);
  if (config_.per_layer_width != 0) embed_per_layer();
  if (config_.streams > 1) split_streams();
}

/// e_i = (RMSNorm(P_i x / sqrt(width)) * norm + sqrt(p) E_i[token]) / sqrt(2), for every layer i.
template <class M>
void Forward<M>::embed_per_layer() noexcept {
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
      float values[F::block_size];
      for (std::size_t i = 0; i < layers * p; ++i) {
        if (i % F::block_size == 0) F::decode(w.block(token_of(t), i / F::block_size), values);
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
    if (!fetch(i)) return false;
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
bool Forward<M>::feed_forward(std::size_t i) noexcept {
  const arch::LayerConfig& layer = config_.layers[i];
  const LayerTensors& t = weights_.layer(i);
  const block::Branch b = branch(t.post_ffn_norm);
  if (layer.experts.beside_dense) {
    if (!experts_beside_dense(i, b)) return false;
  } else if (layer.experts.count == 0) {
    const auto x = norm(residual_, vector(t.ffn_norm), wants_codes(matrix(t.ffn.gate), matrix(t.ffn.up)));
    dense(layer, t.ffn, layer.ff_width, x, b.target(), b.direct());
  } else {
    const ExpertsTensors& e = t.experts;
    const auto x = norm(residual_, vector(t.ffn_norm),
                        block::needs_codes(matrix(e.router), matrix(e.shared_router)) ||
                            wants_codes(matrix(e.gate.first), matrix(e.up.first), matrix(e.shared.gate),
                                        matrix(e.shared.up)));
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

}  // namespace mica::model

#include "mica/model/forward/experts.hpp"
#include "mica/model/forward/mixer.hpp"
#include "mica/model/forward/streams.hpp"
