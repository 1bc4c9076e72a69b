// SPDX-License-Identifier: Apache-2.0
//
// The tensors of a layer, as places in the pager's table. What a layer does not have is absent, not empty memory.
#pragma once

#include "mica/format/id.hpp"

#include <cstddef>
#include <cstdint>

namespace mica::model {

/// One tensor of a model, or some rows of one: its number in the pager's table, its format, its shape.
struct TensorRef {
  std::uint32_t index = 0;
  format::Id id = format::Id::F32;
  std::size_t rows = 0;  // 0: the model does not have it
  std::size_t cols = 0;
  std::size_t first_row = 0;  // of the tensor in the table

  [[nodiscard]] bool present() const noexcept { return rows != 0; }
  /// Where these rows begin in the tensor.
  [[nodiscard]] std::size_t byte_offset() const noexcept {
    const format::Info info = format::info(id);
    return first_row * (cols / info.block_size) * info.block_bytes;
  }
};

/// A tensor with a matrix for each expert. Each has a number of its own in the table, one after the other.
struct ExpertsRef {
  TensorRef first;  // (rows, cols) of expert 0

  [[nodiscard]] bool present() const noexcept { return first.present(); }
  [[nodiscard]] TensorRef expert(std::size_t e) const noexcept {
    TensorRef ref = first;
    ref.index += static_cast<std::uint32_t>(e);
    return ref;
  }
};

/// Attention. Fused tensors are cut into rows when they are read.
struct AttentionTensors {
  TensorRef q, k, v,
      output;  // (heads * q_stride, width), (kv_heads * head_dim, width) x 2, (width, heads * head_dim)
  TensorRef q_bias, k_bias, v_bias, output_bias;  // one number per row
  TensorRef q_norm, k_norm;                       // (head_dim)
  TensorRef sinks;                                // (heads)
};

/// A gated delta net (block/delta_net.hpp).
struct DeltaNetTensors {
  TensorRef qkv;          // (channels, width)
  TensorRef gate;         // (v_width, width)
  TensorRef alpha, beta;  // (v_heads, width)
  TensorRef fused_gates;  // (2 * v_heads, width), in place of both
  TensorRef conv;         // (channels, taps)
  TensorRef a, dt;        // (v_heads)
  TensorRef norm;         // (v_dim)
  TensorRef output;       // (width, v_width)
};

/// A dense feed-forward block.
struct FeedForwardTensors {
  TensorRef gate, up;                       // (ff_width, width)
  TensorRef down;                           // (width, ff_width)
  TensorRef gate_bias, up_bias, down_bias;  // one number per row
};

/// A mixture of experts.
struct ExpertsTensors {
  TensorRef router, router_bias;            // (count, width), (count)
  TensorRef router_scale;                   // (width)
  ExpertsRef gate, up, down;                // per expert as FeedForwardTensors
  TensorRef gate_bias, up_bias, down_bias;  // (count, ff_width) x 2, (count, width)
  TensorRef weight_scale;                   // (count)
  FeedForwardTensors shared;
  TensorRef shared_router;      // (1, width)
  std::size_t first_group = 0;  // of the pager, for expert 0
};

/// The embedding that a layer adds for itself (Gemma 3n, 4).
struct PerLayerTensors {
  TensorRef gate;  // (per_layer_width, width)
  TensorRef proj;  // (width, per_layer_width)
  TensorRef norm;  // (width)
};

/// A learnt residual of low rank beside attention (LAuReL, Gemma 3n).
struct LaurelTensors {
  TensorRef down;  // (rank, width)
  TensorRef up;    // (width, rank)
  TensorRef norm;  // (width)
};

/// Alternating updates (block/altup.hpp).
struct AltUpTensors {
  TensorRef router, router_norm;  // (streams, width), (width)
  TensorRef predict;              // (streams * streams, streams)
  TensorRef correct;              // (streams, streams)
  TensorRef scale;                // (width): of what the layer's own embedding is chosen by
};

struct LayerTensors {
  TensorRef attn_norm;  // (width)
  AttentionTensors attn;
  DeltaNetTensors delta_net;
  TensorRef post_attn_norm;  // (width)
  TensorRef ffn_norm;        // (width)
  FeedForwardTensors ffn;
  ExpertsTensors experts;
  TensorRef post_ffn_norm;  // (width)
  TensorRef dense_post_norm, experts_norm,
      experts_post_norm;  // (width), where experts run beside a dense block
  PerLayerTensors per_layer;
  LaurelTensors laurel;
  AltUpTensors altup;
  TensorRef output_scale;  // (1)
};

}  // namespace mica::model
