// SPDX-License-Identifier: Apache-2.0
//
// A model as hyper-parameters, without a file. From a shape follow the names and sizes of all tensors; the
// formats of their numbers do not.
#pragma once

#include "mica/arch/read_pooling.hpp"
#include "mica/arch/tensor_names.hpp"
#include "mica/format/lists.hpp"
#include "mica/gguf/tensor_info.hpp"

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mica::arch {

/// The hyper-parameters of a model. All layers are alike, but for windows, which the family places or
/// window_interval, delta nets, and what layers without a window have of their own.
struct Shape {
  std::string_view name;         // "llama-8b", as command lines spell it
  std::string_view model;        // "Llama 3.1 8B", for people
  std::string_view arch;         // general.architecture
  std::size_t layers = 0;        // block_count
  std::size_t width = 0;         // embedding_length
  std::size_t heads = 0;         // of queries
  std::size_t kv_heads = 0;      // divides heads
  std::size_t head_dim = 0;      // of layers with a window where full_head_dim is set
  std::size_t ff_width = 0;      // of a dense block; where there are experts, of the dense block they replace
  std::size_t n_vocab = 0;       // rows of the embedding
  std::size_t n_ctx_train = 0;   // tokens
  double rope_base = 10000;      // rope.freq_base
  float norm_epsilon = 1e-5f;    // added to the mean square by norms
  bool tied = false;             // the embedding is the output matrix
  std::size_t window = 0;        // tokens that layers with a window see; 0: no layer has one
  std::size_t experts = 0;       // in every layer; 0: dense
  std::size_t experts_used = 0;  // by a token
  std::size_t expert_ff_width = 0;  // of one expert
  std::size_t shared_ff_width = 0;  // of an expert that every token uses, through a gate; 0: none
  std::size_t rope_dims = 0;        // of a head, that rotate; 0: all
  std::size_t interval = 0;         // one layer in `interval` attends, others have a state; 0: all attend
  std::size_t k_heads = 0;          // of a delta net
  std::size_t v_heads = 0;          // of a delta net; a multiple of k_heads
  std::size_t state_dim = 0;        // of its keys, and of its values
  std::size_t taps = 0;             // of its convolution
  std::size_t mtp_layers = 0;       // behind the others, for multi-token prediction; they attend

  std::size_t window_interval = 0;  // one layer in `window_interval` has no window; 0: as in the family
  std::size_t full_head_dim = 0;    // of those layers; 0: head_dim
  std::size_t full_kv_heads = 0;    // of those layers; 0: kv_heads
  bool full_v_from_k = false;       // their values are their keys
  std::size_t shared_kv = 0;        // last layers, which read keys and values of earlier ones
  bool wide_shared = false;         // and whose dense block is twice as wide
  std::size_t per_layer_width = 0;  // of the embedding that every layer adds for itself; 0: none

  PoolingKey pooling = PoolingKey::none;  // of a model that embeds texts
  std::size_t types = 0;                  // rows of token types; 0: none
  std::size_t dense_width = 0;            // between two matrices behind pooling; 0: there are none

  /// Whether a layer attends; the others have a delta net.
  [[nodiscard]] constexpr bool attends(std::size_t layer) const noexcept {
    return interval == 0 || (layer + 1) % interval == 0 || layer >= layers;
  }
  /// Whether a layer has no window in a model that says which have.
  [[nodiscard]] constexpr bool full(std::size_t layer) const noexcept {
    return window_interval != 0 && (layer + 1) % window_interval == 0;
  }
  /// The sizes of a layer, which differ where it is full.
  [[nodiscard]] constexpr std::size_t head_dim_of(std::size_t layer) const noexcept {
    return full(layer) && full_head_dim != 0 ? full_head_dim : head_dim;
  }
  [[nodiscard]] constexpr std::size_t kv_heads_of(std::size_t layer) const noexcept {
    return full(layer) && full_kv_heads != 0 ? full_kv_heads : kv_heads;
  }
  /// Whether a layer has keys and values of its own.
  [[nodiscard]] constexpr bool stores_kv(std::size_t layer) const noexcept {
    return layer + shared_kv < layers || layer >= layers;
  }
  /// The width of its dense block.
  [[nodiscard]] constexpr std::size_t ff_width_of(std::size_t layer) const noexcept {
    return wide_shared && !stores_kv(layer) ? 2 * ff_width : ff_width;
  }
};

/// The tensors of a family's layers beside those of all families.
struct FamilyTensors {
  std::string_view arch;    // general.architecture
  bool qkv_bias = false;    // of queries, keys and values
  bool head_norms = false;  // of queries and keys
  bool post_norms = false;  // after attention and feed-forward block
  bool fused_qkv = false;   // queries, keys and values in one tensor
  bool fused_up = false;    // gate and up in one tensor
  bool gated = false;       // queries come with a gate
  bool sinks = false;       // of attention; and biases of its output, of the router and of experts
  bool beside = false;  // experts beside a dense block, gate and up in one tensor; outputs of layers scaled
  std::string_view ffn_norm = "ffn_norm";  // the norm before the feed-forward block
  bool mtp = false;                        // a head for multi-token prediction may stand behind the layers

  // Of encoders
  bool layer_norms = false;  // norms are LayerNorm; one of the embeddings, none before the first attention
  bool post_normed = false;  // norms stand behind blocks and have biases
  bool positions = false;    // a learned row for each position
  bool gate = true;          // of the feed-forward block
  bool output_bias = false;  // of attention
  bool up_bias = false;      // of the feed-forward block
  bool down_bias = false;    // of its output
};

/// The families that shapes may name.
inline constexpr FamilyTensors family_tensors[] = {
    {.arch = "llama", .mtp = true},
    {.arch = "qwen2", .qkv_bias = true},
    {.arch = "qwen3", .head_norms = true},
    {.arch = "qwen3moe", .head_norms = true},
    {.arch = "gemma2", .post_norms = true},
    {.arch = "gemma3", .head_norms = true, .post_norms = true},
    {.arch = "gemma4", .head_norms = true, .post_norms = true, .beside = true},
    {.arch = "phi3", .fused_qkv = true, .fused_up = true},
    {.arch = "qwen35", .head_norms = true, .gated = true, .ffn_norm = "post_attention_norm", .mtp = true},
    {.arch = "qwen35moe", .head_norms = true, .gated = true, .ffn_norm = "post_attention_norm", .mtp = true},
    {.arch = "gpt-oss", .qkv_bias = true, .sinks = true, .ffn_norm = "post_attention_norm"},
};

/// Those of encoders that shapes may name.
inline constexpr FamilyTensors encoder_tensors[] = {
    {.arch = "bert",
     .qkv_bias = true,
     .layer_norms = true,
     .post_normed = true,
     .positions = true,
     .gate = false,
     .output_bias = true,
     .up_bias = true,
     .down_bias = true},
    {.arch = "nomic-bert", .fused_qkv = true, .layer_norms = true, .post_normed = true},
    {.arch = "jina-bert-v2",
     .qkv_bias = true,
     .fused_up = true,
     .layer_norms = true,
     .post_normed = true,
     .output_bias = true,
     .down_bias = true},
    {.arch = "modern-bert", .fused_qkv = true, .fused_up = true, .layer_norms = true},
    {.arch = "gemma-embedding", .head_norms = true, .post_norms = true},
};

/// The family of that name; empty when there is none.
[[nodiscard]] constexpr std::optional<FamilyTensors> find_family_tensors(std::string_view arch) noexcept {
  for (const FamilyTensors& family : family_tensors) {
    if (family.arch == arch) return family;
  }
  for (const FamilyTensors& family : encoder_tensors) {
    if (family.arch == arch) return family;
  }
  return std::nullopt;
}

namespace detail {

[[nodiscard]] constexpr FamilyTensors family_of(const Shape& shape) noexcept {
  return find_family_tensors(shape.arch).value_or(FamilyTensors{});
}

/// Collects the tensors of a shape in the order in which files have them.
class TensorList {
 public:
  void add(std::string name, std::initializer_list<std::uint64_t> dims) {
    gguf::TensorInfo& info = tensors_.emplace_back();
    info.name = std::move(name);
    info.format = format::info(format::F32::id);
    info.n_dims = static_cast<std::uint8_t>(dims.size());
    std::copy(dims.begin(), dims.end(), info.dims.begin());
    info.bytes = info.elements() * sizeof(float);
  }
  void add_attention(const Shape& shape, std::size_t i) {
    const std::size_t head_dim = shape.head_dim_of(i);
    const std::size_t q = shape.heads * head_dim;
    const std::size_t kv = shape.kv_heads_of(i) * head_dim;
    const FamilyTensors family = family_of(shape);
    if (family.fused_qkv) {
      add(tensor_names::layer(i, "attn_qkv"), {shape.width, q + 2 * kv});
    } else {
      add(tensor_names::layer(i, "attn_q"), {shape.width, family.gated ? 2 * q : q});
      if (shape.stores_kv(i)) add(tensor_names::layer(i, "attn_k"), {shape.width, kv});
      if (shape.stores_kv(i) && !(shape.full(i) && shape.full_v_from_k))
        add(tensor_names::layer(i, "attn_v"), {shape.width, kv});
    }
    if (family.qkv_bias) {
      add(tensor_names::layer_bias(i, "attn_q"), {q});
      add(tensor_names::layer_bias(i, "attn_k"), {kv});
      add(tensor_names::layer_bias(i, "attn_v"), {kv});
    }
    add(tensor_names::layer(i, "attn_output"), {q, shape.width});
    if (family.sinks || family.output_bias) add(tensor_names::layer_bias(i, "attn_output"), {shape.width});
    if (family.sinks) add(tensor_names::layer(i, "attn_sinks"), {shape.heads});
    if (!family.head_norms) return;
    add(tensor_names::layer(i, "attn_q_norm"), {head_dim});
    if (shape.stores_kv(i)) add(tensor_names::layer(i, "attn_k_norm"), {head_dim});
  }
  void add_delta_net(const Shape& shape, std::size_t i) {
    const std::size_t k = shape.k_heads * shape.state_dim, v = shape.v_heads * shape.state_dim;
    add(tensor_names::layer(i, "attn_qkv"), {shape.width, 2 * k + v});
    add(tensor_names::layer(i, "attn_gate"), {shape.width, v});
    add(tensor_names::layer(i, "ssm_alpha"), {shape.width, shape.v_heads});
    add(tensor_names::layer(i, "ssm_beta"), {shape.width, shape.v_heads});
    add(tensor_names::layer(i, "ssm_conv1d"), {shape.taps, 2 * k + v});
    add(tensor_names::layer_plain(i, "ssm_a"), {shape.v_heads});
    add(tensor_names::layer_bias(i, "ssm_dt"), {shape.v_heads});
    add(tensor_names::layer(i, "ssm_norm"), {shape.state_dim});
    add(tensor_names::layer(i, "ssm_out"), {v, shape.width});
  }
  void add_experts(const Shape& shape, std::size_t i) {
    add(tensor_names::layer(i, "ffn_gate_inp"), {shape.width, shape.experts});
    add(tensor_names::layer(i, "ffn_gate_exps"), {shape.width, shape.expert_ff_width, shape.experts});
    add(tensor_names::layer(i, "ffn_up_exps"), {shape.width, shape.expert_ff_width, shape.experts});
    add(tensor_names::layer(i, "ffn_down_exps"), {shape.expert_ff_width, shape.width, shape.experts});
    if (family_of(shape).sinks) {
      add(tensor_names::layer_bias(i, "ffn_gate_inp"), {shape.experts});
      add(tensor_names::layer_bias(i, "ffn_gate_exps"), {shape.expert_ff_width, shape.experts});
      add(tensor_names::layer_bias(i, "ffn_up_exps"), {shape.expert_ff_width, shape.experts});
      add(tensor_names::layer_bias(i, "ffn_down_exps"), {shape.width, shape.experts});
    }
    if (shape.shared_ff_width == 0) return;
    add(tensor_names::layer(i, "ffn_gate_inp_shexp"), {shape.width});
    add(tensor_names::layer(i, "ffn_gate_shexp"), {shape.width, shape.shared_ff_width});
    add(tensor_names::layer(i, "ffn_up_shexp"), {shape.width, shape.shared_ff_width});
    add(tensor_names::layer(i, "ffn_down_shexp"), {shape.shared_ff_width, shape.width});
  }
  /// Experts whose sum is added to that of the dense block, with norms and scales of their own.
  void add_experts_beside(const Shape& shape, std::size_t i) {
    const std::size_t ff = shape.expert_ff_width;
    add(tensor_names::layer(i, "ffn_gate_inp"), {shape.width, shape.experts});
    add(tensor_names::layer_part(i, "ffn_gate_inp", "scale"), {shape.width});
    add(tensor_names::layer(i, "ffn_gate_up_exps"), {shape.width, 2 * ff, shape.experts});
    add(tensor_names::layer(i, "ffn_down_exps"), {ff, shape.width, shape.experts});
    add(tensor_names::layer_part(i, "ffn_down_exps", "scale"), {shape.experts});
    for (const std::string_view norm : {"post_ffw_norm_1", "pre_ffw_norm_2", "post_ffw_norm_2"})
      add(tensor_names::layer(i, norm), {shape.width});
  }
  void add_per_layer(const Shape& shape, std::size_t i) {
    add(tensor_names::layer(i, "inp_gate"), {shape.width, shape.per_layer_width});
    add(tensor_names::layer(i, "proj"), {shape.per_layer_width, shape.width});
    add(tensor_names::layer(i, "post_norm"), {shape.width});
  }
  void add_feed_forward(const Shape& shape, std::size_t i) {
    const FamilyTensors family = family_of(shape);
    const bool beside = family.beside;
    if (shape.experts != 0 && !beside) return add_experts(shape, i);
    if (shape.experts != 0) add_experts_beside(shape, i);
    const std::size_t ff = shape.ff_width_of(i);
    if (family.gate && !family.fused_up) add(tensor_names::layer(i, "ffn_gate"), {shape.width, ff});
    add(tensor_names::layer(i, "ffn_up"), {shape.width, family.fused_up ? 2 * ff : ff});
    if (family.up_bias) add(tensor_names::layer_bias(i, "ffn_up"), {ff});
    add(tensor_names::layer(i, "ffn_down"), {ff, shape.width});
    if (family.down_bias) add(tensor_names::layer_bias(i, "ffn_down"), {shape.width});
  }
  /// The tensors before the layers, without the token embedding.
  void add_input(const Shape& shape) {
    const FamilyTensors family = family_of(shape);
    if (family.positions) add(std::string(tensor_names::position_embd), {shape.width, shape.n_ctx_train});
    if (shape.types != 0) add(std::string(tensor_names::token_types), {shape.width, shape.types});
    if (!family.layer_norms) return;
    add("token_embd_norm.weight", {shape.width});
    if (family.post_normed) add("token_embd_norm.bias", {shape.width});
  }
  /// A layer in BERT's order.
  void add_post_normed_layer(const Shape& shape, std::size_t i) {
    const auto add_norm = [&](std::string_view norm) {
      add(tensor_names::layer(i, norm), {shape.width});
      add(tensor_names::layer_bias(i, norm), {shape.width});
    };
    add_attention(shape, i);
    add_norm("attn_output_norm");
    add_feed_forward(shape, i);
    add_norm("layer_output_norm");
  }
  void add_layer(const Shape& shape, std::size_t i) {
    const FamilyTensors family = family_of(shape);
    if (family.post_normed) return add_post_normed_layer(shape, i);
    if (!family.layer_norms || i != 0) add(tensor_names::layer(i, "attn_norm"), {shape.width});
    if (shape.attends(i)) {
      add_attention(shape, i);
    } else {
      add_delta_net(shape, i);
    }
    if (family.post_norms) add(tensor_names::layer(i, "post_attention_norm"), {shape.width});
    add(tensor_names::layer(i, family.ffn_norm), {shape.width});
    add_feed_forward(shape, i);
    if (family.post_norms) add(tensor_names::layer(i, "post_ffw_norm"), {shape.width});
    if (shape.per_layer_width != 0) add_per_layer(shape, i);
    if (family.beside) add(tensor_names::layer(i, "layer_output_scale"), {1});
  }
  /// What a head for multi-token prediction has beside its layer.
  void add_mtp(const Shape& shape, std::size_t i) {
    add(tensor_names::layer(i, "nextn.eh_proj"), {2 * shape.width, shape.width});
    for (const std::string_view norm : {"nextn.enorm", "nextn.hnorm", "nextn.shared_head_norm"})
      add(tensor_names::layer(i, norm), {shape.width});
  }
  [[nodiscard]] std::vector<gguf::TensorInfo> take() { return std::move(tensors_); }

 private:
  std::vector<gguf::TensorInfo> tensors_;
};

}  // namespace detail

/// Whether a file of the shape may have a head for multi-token prediction that runs.
[[nodiscard]] constexpr bool can_have_mtp(const Shape& shape) noexcept {
  return detail::family_of(shape).mtp;
}

/// All tensors of a file of that shape, as F32. Offsets are not set.
[[nodiscard]] inline std::vector<gguf::TensorInfo> tensors_of(const Shape& shape) {
  detail::TensorList list;
  list.add(std::string(tensor_names::token_embd), {shape.width, shape.n_vocab});
  if (const std::size_t all = shape.layers * shape.per_layer_width) {
    list.add(std::string(tensor_names::per_layer_token_embd), {all, shape.n_vocab});
    list.add(std::string(tensor_names::per_layer_model_proj), {shape.width, all});
    list.add(std::string(tensor_names::per_layer_proj_norm), {shape.per_layer_width});
  }
  list.add_input(shape);
  for (std::size_t i = 0; i < shape.layers + shape.mtp_layers; ++i) list.add_layer(shape, i);
  for (std::size_t i = 0; i < shape.mtp_layers; ++i) list.add_mtp(shape, shape.layers + i);
  if (!detail::family_of(shape).post_normed) list.add(std::string(tensor_names::output_norm), {shape.width});
  if (shape.dense_width != 0) {
    list.add("dense_2.weight", {shape.width, shape.dense_width});
    list.add("dense_3.weight", {shape.dense_width, shape.width});
  }
  if (!shape.tied) list.add(std::string(tensor_names::output), {shape.width, shape.n_vocab});
  return list.take();
}

/// The sizes of a shape that speed and memory per layer do not depend on; 0: as the shape has them.
struct Counts {
  std::size_t layers = 0;
  std::size_t experts = 0;  // in every layer
  std::size_t n_vocab = 0;  // rows of the embedding
};

/// A shape with other counts and the same layers. Those that share keys and values stay the same part of all.
[[nodiscard]] constexpr Shape with_counts(Shape shape, const Counts& counts) noexcept {
  if (counts.layers != 0) {
    shape.shared_kv = shape.shared_kv * counts.layers / shape.layers;
    shape.layers = counts.layers;
  }
  if (counts.experts != 0) shape.experts = counts.experts;
  if (counts.n_vocab != 0) shape.n_vocab = counts.n_vocab;
  return shape;
}

/// All weights together.
[[nodiscard]] inline std::uint64_t parameters(const Shape& shape) {
  std::uint64_t sum = 0;
  for (const gguf::TensorInfo& tensor : tensors_of(shape)) sum += tensor.elements();
  return sum;
}

}  // namespace mica::arch
