// SPDX-License-Identifier: Apache-2.0
//
// Which tensors a model needs, where they lie, and that they have the shapes its Config promises. All checks happen here,
// before anything is read: a step never meets a surprise.
#pragma once

#include "mica/arch/config.hpp"
#include "mica/arch/tensor_names.hpp"
#include "mica/base/assert.hpp"
#include "mica/base/visit.hpp"
#include "mica/format/lists.hpp"
#include "mica/gguf/document_ref.hpp"
#include "mica/gguf/reader.hpp"
#include "mica/model/layer_tensors.hpp"
#include "mica/paging/concept.hpp"
#include "mica/tensor/any_matrix.hpp"
#include "mica/tensor/packing.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mica::model {

/// All tensors of a model. List: the formats it can compute with.
template <class List>
class Weights {
 public:
  /// Raises ErrorCode::file or ErrorCode::unsupported, naming the tensor, what was found and what is needed.
  /// The document outlives this.
  Weights(gguf::DocumentRef document, const arch::Config& config);

  [[nodiscard]] const TensorRef& token_embd() const noexcept { return token_embd_; }
  [[nodiscard]] const LayerTensors& layer(std::size_t i) const noexcept { return layers_[i]; }
  [[nodiscard]] const TensorRef& output_norm() const noexcept { return output_norm_; }
  /// The head; the embedding itself when they are tied.
  [[nodiscard]] const TensorRef& output() const noexcept { return output_; }
  /// Of models whose layers have embeddings of their own: (n_vocab, L * p), (L * p, width), (p).
  [[nodiscard]] const TensorRef& per_layer_embd() const noexcept { return per_layer_embd_; }
  [[nodiscard]] const TensorRef& per_layer_proj() const noexcept { return per_layer_proj_; }
  [[nodiscard]] const TensorRef& per_layer_norm() const noexcept { return per_layer_norm_; }
  /// Of models with several residual streams: what makes the others of the first, and what they go through before all are
  /// added, which is held with the last layer; ((streams - 1) * width, width) each.
  [[nodiscard]] const TensorRef& streams_in() const noexcept { return streams_in_; }
  [[nodiscard]] const TensorRef& streams_out() const noexcept { return streams_out_; }

  [[nodiscard]] std::span<const paging::Extent> extents() const noexcept { return extents_; }
  /// Embedding, layers, head, experts.
  [[nodiscard]] std::size_t groups() const noexcept { return groups_; }
  /// Bytes of all tensors, as they lie in the file.
  [[nodiscard]] std::uint64_t bytes() const noexcept;
  [[nodiscard]] const gguf::Document& document() const noexcept { return document_; }
  /// Refuses a pager that does not know tensors of a packed directory as packed. served(i): what it says of tensor i of the table.
  /// Raises ErrorCode::unsupported.
  void check_served(const auto& served) const {
    for (std::size_t i = 0; i < extents_.size(); ++i) {
      MICA_CHECK(!extents_[i].packed || served(i), unsupported, document_.path(), ": tensor '",
                 escaped(names_[i]),
                 "' lies packed, and this pager serves rows of files alone; use paging::AnyPager, Resident, "
                 "Streamed, or "
                 "Mapped with paging::Layout::packed");
    }
  }
  /// The name of a tensor of the table.
  [[nodiscard]] std::string_view name(std::size_t index) const noexcept { return names_[index]; }
  /// The tensor as a matrix, at the address that its pager gives.
  [[nodiscard]] static tensor::AnyMatrix<List> matrix(const TensorRef& ref, const std::byte* data,
                                                      bool packed) noexcept {
    const bool packed12 = packed && tensor::is_packable12(ref.id);
    const std::size_t offset = packed12 ? tensor::packed12_bytes(ref.first_row, ref.cols) : ref.byte_offset();
    return {ref.id, data + offset, ref.rows, ref.cols, packed};
  }

 private:
  [[nodiscard]] bool has(std::string_view name) const { return document_.find(name) != nullptr; }
  [[nodiscard]] TensorRef add(const gguf::TensorInfo& tensor, std::size_t group);
  [[nodiscard]] const gguf::TensorInfo& checked(std::string_view name, std::size_t rows,
                                                std::size_t cols) const;
  [[nodiscard]] TensorRef matrix(std::string_view name, std::size_t rows, std::size_t cols,
                                 std::size_t group);
  [[nodiscard]] TensorRef slice(const TensorRef& whole, std::size_t first_row, std::size_t rows);
  /// The tensor added last is a matrix that a pager may pack.
  void let_pack(std::size_t rows, std::size_t cols) {
    extents_.back().rows = rows;
    extents_.back().cols = cols;
  }
  /// The rows of a tensor stay as they lie in the file: somebody reads them one by one.
  void keep_rows(const TensorRef& ref) { extents_[ref.index].rows = 0; }
  [[nodiscard]] TensorRef vector(std::string_view name, std::size_t width, std::size_t group);
  void check_layout() const;
  [[nodiscard]] ExpertsRef experts(std::string_view name, std::size_t count, std::size_t rows,
                                   std::size_t cols, std::size_t first_group);

  [[nodiscard]] LayerTensors read_layer(std::size_t i, const arch::Config& config);
  void read_attention(std::size_t i, const arch::LayerConfig& layer, std::size_t width, AttentionTensors& t);
  void read_attention_biases(std::size_t i, const arch::LayerConfig& layer, std::size_t width,
                             AttentionTensors& t);
  void read_delta_net(std::size_t i, const block::DeltaNetConfig& config, std::size_t width,
                      DeltaNetTensors& t);
  void read_feed_forward(std::size_t i, const arch::LayerConfig& layer, std::size_t width,
                         FeedForwardTensors& t);
  void read_streams(const arch::Config& config);
  void read_altup(std::size_t i, std::size_t streams, std::size_t width, AltUpTensors& t);
  void read_laurel(std::size_t i, std::size_t rank, std::size_t width, LaurelTensors& t);
  void read_experts(std::size_t i, const arch::LayerConfig& layer, std::size_t width, ExpertsTensors& t);

  const gguf::Document& document_;
  std::size_t groups_;
  std::vector<paging::Extent> extents_;
  std::vector<std::string_view> names_;  // by extent
  TensorRef token_embd_;
  TensorRef per_layer_embd_, per_layer_proj_, per_layer_norm_;
  TensorRef streams_in_, streams_out_;
  std::vector<LayerTensors> layers_;
  TensorRef output_norm_;
  TensorRef output_;
};

template <class List>
Weights<List>::Weights(gguf::DocumentRef document, const arch::Config& config)
    : document_(document), groups_(config.layers.size() + 2) {
  namespace names = arch::tensor_names;
  const std::size_t head_group = config.layers.size() + 1;
  token_embd_ = matrix(names::token_embd, config.n_vocab, config.width, 0);
  if (config.per_layer_width != 0) {
    const std::size_t all = config.layers.size() * config.per_layer_width;
    per_layer_embd_ = matrix(names::per_layer_token_embd, config.n_vocab, all, 0);
    keep_rows(per_layer_embd_);
    per_layer_proj_ = matrix(names::per_layer_model_proj, all, config.width, 0);
    per_layer_norm_ = vector(names::per_layer_proj_norm, config.per_layer_width, 0);
  }
  if (config.streams > 1) read_streams(config);
  for (std::size_t i = 0; i < config.layers.size(); ++i) layers_.push_back(read_layer(i, config));
  output_norm_ = vector(names::output_norm, config.width, head_group);
  output_ =
      has(names::output) ? matrix(names::output, config.n_vocab, config.width, head_group) : token_embd_;
  if (has(names::output)) keep_rows(token_embd_);
  check_layout();
}

template <class List>
LayerTensors Weights<List>::read_layer(std::size_t i, const arch::Config& config) {
  const arch::LayerConfig& layer = config.layers[i];
  const auto name = [i](std::string_view part) { return arch::tensor_names::layer(i, part); };
  const auto norm = [&](std::string_view part) { return vector(name(part), config.width, i + 1); };
  LayerTensors t;
  t.attn_norm = norm("attn_norm");
  if (layer.attends()) {
    read_attention(i, layer, config.width, t.attn);
  } else {
    read_delta_net(i, layer.delta_net, config.width, t.delta_net);
  }
  if (layer.post_norms) t.post_attn_norm = norm("post_attention_norm");
  t.ffn_norm = norm(config.ffn_norm);
  if (layer.ff_width != 0) read_feed_forward(i, layer, config.width, t.ffn);
  if (layer.experts.count != 0) read_experts(i, layer, config.width, t.experts);
  if (layer.experts.beside_dense) {
    t.dense_post_norm = norm("post_ffw_norm_1");
    t.experts_norm = norm("pre_ffw_norm_2");
    t.experts_post_norm = norm("post_ffw_norm_2");
  }
  if (layer.post_norms) t.post_ffn_norm = norm("post_ffw_norm");
  if (config.per_layer_width != 0) {
    t.per_layer.gate = matrix(name("inp_gate"), config.per_layer_width, config.width, i + 1);
    t.per_layer.proj = matrix(name("proj"), config.width, config.per_layer_width, i + 1);
    t.per_layer.norm = norm("post_norm");
  }
  if (layer.laurel_rank != 0) read_laurel(i, layer.laurel_rank, config.width, t.laurel);
  if (config.streams > 1) read_altup(i, config.streams, config.width, t.altup);
  if (layer.output_scale) t.output_scale = vector(name("layer_output_scale"), 1, i + 1);
  return t;
}

template <class List>
void Weights<List>::read_attention(std::size_t i, const arch::LayerConfig& layer, std::size_t width,
                                   AttentionTensors& t) {
  namespace names = arch::tensor_names;
  const auto name = [i](std::string_view part) { return names::layer(i, part); };
  const std::size_t q = layer.heads * layer.q_stride(), kv = layer.kv_width(), group = i + 1;
  if (layer.stores_kv() && !has(name("attn_q")) && has(name("attn_qkv"))) {
    const TensorRef fused = matrix(name("attn_qkv"), q + 2 * kv, width, group);
    t.q = slice(fused, 0, q);
    t.k = slice(fused, q, kv);
    t.v = slice(fused, q + kv, kv);
  } else {
    t.q = matrix(name("attn_q"), q, width, group);
    if (layer.stores_kv()) {
      t.k = matrix(name("attn_k"), kv, width, group);
      if (!layer.v_from_k) t.v = matrix(name("attn_v"), kv, width, group);
    }
  }
  t.output = matrix(name("attn_output"), width, layer.q_width(), group);
  read_attention_biases(i, layer, width, t);
  if (layer.head_norm == block::HeadNorm::weighted) {
    t.q_norm = vector(name("attn_q_norm"), layer.head_dim, group);
    if (layer.stores_kv()) t.k_norm = vector(name("attn_k_norm"), layer.head_dim, group);
  }
  if (layer.sinks) t.sinks = vector(name("attn_sinks"), layer.heads, group);
}

template <class List>
void Weights<List>::read_attention_biases(std::size_t i, const arch::LayerConfig& layer, std::size_t width,
                                          AttentionTensors& t) {
  const auto bias = [i](std::string_view part) { return arch::tensor_names::layer_bias(i, part); };
  const std::size_t q = layer.heads * layer.q_stride(), kv = layer.kv_width(), group = i + 1;
  if (layer.qkv_bias && !has(bias("attn_q")) && has(bias("attn_qkv"))) {
    const TensorRef fused = vector(bias("attn_qkv"), q + 2 * kv, group);
    t.q_bias = {fused.index, fused.id, q, 1, 0};
    t.k_bias = {fused.index, fused.id, kv, 1, q};
    t.v_bias = {fused.index, fused.id, kv, 1, q + kv};
  } else if (layer.qkv_bias) {
    t.q_bias = vector(bias("attn_q"), q, group);
    t.k_bias = vector(bias("attn_k"), kv, group);
    t.v_bias = vector(bias("attn_v"), kv, group);
  }
  if (layer.output_bias) t.output_bias = vector(bias("attn_output"), width, group);
}

template <class List>
void Weights<List>::read_delta_net(std::size_t i, const block::DeltaNetConfig& d, std::size_t width,
                                   DeltaNetTensors& t) {
  namespace names = arch::tensor_names;
  const auto name = [i](std::string_view part) { return names::layer(i, part); };
  const std::size_t group = i + 1;
  t.qkv = matrix(name("attn_qkv"), d.channels(), width, group);
  t.gate = matrix(name("attn_gate"), d.v_width(), width, group);
  if (d.fused_gates) {
    t.fused_gates = matrix(name("ssm_ba"), 2 * d.v_heads, width, group);
    keep_rows(t.fused_gates);
  } else {
    t.alpha = matrix(name("ssm_alpha"), d.v_heads, width, group);
    t.beta = matrix(name("ssm_beta"), d.v_heads, width, group);
    keep_rows(t.alpha);
    keep_rows(t.beta);
  }
  t.conv = vector(name("ssm_conv1d"), d.channels() * d.taps, group);
  t.a = vector(names::layer_plain(i, "ssm_a"), d.v_heads, group);
  t.dt = vector(names::layer_bias(i, "ssm_dt"), d.v_heads, group);
  t.norm = vector(name("ssm_norm"), d.v_dim, group);
  t.output = matrix(name("ssm_out"), width, d.v_width(), group);
}

template <class List>
void Weights<List>::read_feed_forward(std::size_t i, const arch::LayerConfig& layer, std::size_t width,
                                      FeedForwardTensors& t) {
  const auto name = [i](std::string_view part) { return arch::tensor_names::layer(i, part); };
  const auto bias = [i](std::string_view part) { return arch::tensor_names::layer_bias(i, part); };
  const std::size_t ff_width = layer.ff_width;
  const gguf::TensorInfo* const up = document_.find(name("ffn_up"));
  if (has(name("ffn_gate")) || up == nullptr || up->rows() != 2 * ff_width) {
    t.gate = matrix(name("ffn_gate"), ff_width, width, i + 1);
    t.up = matrix(name("ffn_up"), ff_width, width, i + 1);
  } else {  // one tensor: the gate, then what it gates
    const TensorRef fused = matrix(name("ffn_up"), 2 * ff_width, width, i + 1);
    t.gate = slice(fused, 0, ff_width);
    t.up = slice(fused, ff_width, ff_width);
  }
  t.down = matrix(name("ffn_down"), width, ff_width, i + 1);
  if (!layer.ff_bias) return;
  t.gate_bias = vector(bias("ffn_gate"), ff_width, i + 1);
  t.up_bias = vector(bias("ffn_up"), ff_width, i + 1);
  t.down_bias = vector(bias("ffn_down"), width, i + 1);
}

template <class List>
void Weights<List>::read_streams(const arch::Config& config) {
  namespace names = arch::tensor_names;
  const std::size_t rows = (config.streams - 1) * config.width;
  streams_in_ = matrix(names::altup_proj, rows, config.width, 0);
  streams_out_ = matrix(names::altup_unembd_proj, rows, config.width, config.layers.size());
}

template <class List>
void Weights<List>::read_altup(std::size_t i, std::size_t streams, std::size_t width, AltUpTensors& t) {
  const auto name = [i](std::string_view part) { return arch::tensor_names::layer(i, part); };
  t.router = matrix(name("altup_router"), streams, width, i + 1);
  t.router_norm = vector(name("altup_router_norm"), width, i + 1);
  t.predict = matrix(name("altup_predict_coef"), streams * streams, streams, i + 1);
  t.correct = matrix(name("altup_correct_coef"), streams, streams, i + 1);
  t.scale = vector(name("altup_correct_scale"), width, i + 1);
}

template <class List>
void Weights<List>::read_laurel(std::size_t i, std::size_t rank, std::size_t width, LaurelTensors& t) {
  const auto name = [i](std::string_view part) { return arch::tensor_names::layer(i, part); };
  t.down = matrix(name("laurel_l"), rank, width, i + 1);
  t.up = matrix(name("laurel_r"), width, rank, i + 1);
  t.norm = vector(name("laurel_post_norm"), width, i + 1);
}

template <class List>
void Weights<List>::read_experts(std::size_t i, const arch::LayerConfig& layer, std::size_t width,
                                 ExpertsTensors& t) {
  namespace names = arch::tensor_names;
  const auto name = [i](std::string_view part) { return names::layer(i, part); };
  const auto bias = [i](std::string_view part) { return names::layer_bias(i, part); };
  const block::ExpertsConfig& e = layer.experts;
  const std::size_t group = i + 1, ff = e.ff_width;
  t.first_group = groups_;
  groups_ += e.count;
  t.router = matrix(name("ffn_gate_inp"), e.count, width, group);
  if (has(name("ffn_gate_up_exps"))) {  // one tensor: of each expert the gate, then what it gates
    const ExpertsRef fused = experts(name("ffn_gate_up_exps"), e.count, 2 * ff, width, t.first_group);
    for (std::size_t at = 1; at < e.count; ++at) static_cast<void>(slice(fused.expert(at), ff, ff));
    t.gate.first = slice(fused.first, 0, ff);
    t.up.first = slice(fused.first, ff, ff);
  } else {
    t.gate = experts(name("ffn_gate_exps"), e.count, ff, width, t.first_group);
    t.up = experts(name("ffn_up_exps"), e.count, ff, width, t.first_group);
  }
  t.down = experts(name("ffn_down_exps"), e.count, width, ff, t.first_group);
  if (layer.expert_bias) {
    t.router_bias = vector(bias("ffn_gate_inp"), e.count, group);
    t.gate_bias = vector(bias("ffn_gate_exps"), e.count * ff, group);
    t.up_bias = vector(bias("ffn_up_exps"), e.count * ff, group);
    t.down_bias = vector(bias("ffn_down_exps"), e.count * width, group);
  }
  if (e.scaled_router) {
    t.router_scale = vector(names::layer_part(i, "ffn_gate_inp", "scale"), width, group);
    t.weight_scale = vector(names::layer_part(i, "ffn_down_exps", "scale"), e.count, group);
  }
  if (e.shared_ff_width == 0) return;
  t.shared.gate = matrix(name("ffn_gate_shexp"), e.shared_ff_width, width, group);
  t.shared.up = matrix(name("ffn_up_shexp"), e.shared_ff_width, width, group);
  t.shared.down = matrix(name("ffn_down_shexp"), width, e.shared_ff_width, group);
  if (e.shared_gate) t.shared_router = matrix(name("ffn_gate_inp_shexp"), 1, width, group);
}

template <class List>
std::uint64_t Weights<List>::bytes() const noexcept {
  std::uint64_t sum = 0;
  for (const paging::Extent& extent : extents_) sum += extent.bytes;
  return sum;
}

template <class List>
TensorRef Weights<List>::add(const gguf::TensorInfo& tensor, std::size_t group) {
  MICA_CHECK(tensor.parts == 1, file, document_.source(tensor).path(), ": tensor '", escaped(tensor.name),
             "' lies in ", tensor.parts, " parts; one is needed; pack the model again");
  paging::Extent& extent = extents_.emplace_back();
  extent = {tensor.source, static_cast<std::uint32_t>(group), tensor.offset, tensor.bytes, tensor.format.id};
  extent.packed = tensor.packed;
  extent.checked = !tensor.checksums.empty();
  if (extent.checked) extent.checksum = tensor.checksums[0];
  names_.push_back(tensor.name);
  return {static_cast<std::uint32_t>(extents_.size() - 1), tensor.format.id,
          static_cast<std::size_t>(tensor.rows()), static_cast<std::size_t>(tensor.width())};
}

template <class List>
const gguf::TensorInfo& Weights<List>::checked(std::string_view name, std::size_t rows,
                                               std::size_t cols) const {
  const gguf::TensorInfo& tensor = document_.tensor(name);
  MICA_CHECK(tensor.width() == cols && tensor.rows() == rows, file, document_.metadata().file(), ": tensor '",
             name, "' is ", tensor.shape(), "; needed: ", cols, " x ", rows);
  MICA_CHECK(visit_id<List>(tensor.format.id, [](auto) {}), unsupported, document_.metadata().file(),
             ": tensor '", name, "' has type ", tensor.format.name, "; supported: ", format::names<List>());
  return tensor;
}

template <class List>
TensorRef Weights<List>::matrix(std::string_view name, std::size_t rows, std::size_t cols,
                                std::size_t group) {
  const TensorRef ref = add(checked(name, rows, cols), group);
  let_pack(rows, cols);
  return ref;
}

/// Rows of a fused tensor. One that is cut within a panel is not packed.
template <class List>
TensorRef Weights<List>::slice(const TensorRef& whole, std::size_t first_row, std::size_t rows) {
  constexpr std::size_t panel = tensor::Rows16::rows;
  if (first_row % panel != 0) keep_rows(whole);
  TensorRef ref = whole;
  ref.first_row = first_row;
  ref.rows = rows;
  return ref;
}

/// Every expert gets an entry and a group of its own: those that a token does not use need not be in memory.
template <class List>
ExpertsRef Weights<List>::experts(std::string_view name, std::size_t count, std::size_t rows,
                                  std::size_t cols, std::size_t first_group) {
  const gguf::TensorInfo& whole = checked(name, count * rows, cols);
  MICA_CHECK(whole.parts == 1 || whole.parts == count, file, document_.source(whole).path(), ": tensor '",
             name, "' lies in ", whole.parts, " parts; there are ", count, " experts; pack the model again");
  MICA_CHECK(whole.parts == count || !whole.packed, file, document_.source(whole).path(), ": tensor '", name,
             "' lies packed as one; ", count, " parts are needed; pack the model again");
  gguf::TensorInfo one = whole;
  one.bytes = whole.bytes / count;
  one.parts = 1;
  const std::uint64_t stride = whole.parts == 1 ? one.bytes : whole.stride;
  ExpertsRef ref;
  for (std::size_t e = 0; e < count; ++e, one.offset += stride) {
    one.checksums.clear();
    if (whole.parts == count && !whole.checksums.empty()) one.checksums.push_back(whole.checksums[e]);
    const TensorRef added = add(one, first_group + e);
    names_.back() = whole.name;
    let_pack(rows, cols);
    if (e == 0) ref.first = added;
  }
  ref.first.rows = rows;
  return ref;
}

/// Of a packed directory: only what products read, in whole panels, may lie packed.
template <class List>
void Weights<List>::check_layout() const {
  for (std::size_t i = 0; i < extents_.size(); ++i) {
    const paging::Extent& extent = extents_[i];
    MICA_CHECK(!extent.packed || tensor::can_pack(extent.format, extent.rows), file,
               document_.sources()[extent.source].path(), ": tensor '", escaped(names_[i]),
               "' lies packed, and is read row by row; pack the model again");
  }
}

template <class List>
TensorRef Weights<List>::vector(std::string_view name, std::size_t width, std::size_t group) {
  const gguf::TensorInfo& tensor = document_.tensor(name);
  MICA_CHECK(tensor.format.id == format::Id::F32 && tensor.elements() == width, file,
             document_.metadata().file(), ": tensor '", name, "' is ", tensor.format.name, " ",
             tensor.shape(), "; needed: F32 ", width);
  return add(tensor, group);
}

}  // namespace mica::model
