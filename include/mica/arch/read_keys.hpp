// SPDX-License-Identifier: Apache-2.0
//
// The keys that every family shares.
#pragma once

#include "mica/arch/config.hpp"
#include "mica/arch/key_reader.hpp"
#include "mica/arch/read_pooling.hpp"
#include "mica/arch/tensor_names.hpp"
#include "mica/base/assert.hpp"
#include "mica/base/bytes.hpp"
#include "mica/block/attention.hpp"
#include "mica/block/dense_feed_forward.hpp"
#include "mica/gguf/document.hpp"
#include "mica/kernel/attention.hpp"

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mica::arch {

/// Layers behind the trunk, heads for multi-token prediction (arch/mtp.hpp).
[[nodiscard]] inline std::size_t read_mtp_layer_count(const KeyReader& keys) {
  const std::size_t all = keys.count("block_count", 1, max_layers);
  return keys.count_or("nextn_predict_layers", 0, all - 1, 0);
}

/// Layers of the trunk.
[[nodiscard]] inline std::size_t read_layer_count(const KeyReader& keys) {
  return keys.count("block_count", 1, max_layers) - read_mtp_layer_count(keys);
}

/// Numbers of attention heads and their width in one layer. `suffix` chooses the keys of window layers,
/// "_swa".
inline void read_head_dim(const KeyReader& keys, std::size_t width, block::AttentionConfig& layer,
                          std::string_view suffix = "") {
  const std::string key_length = join("attention.key_length", suffix);
  const std::string value_length = join("attention.value_length", suffix);
  layer.head_dim = keys.count_or(key_length, 1, kernel::max_head_dim, width / layer.heads);
  MICA_CHECK(layer.heads % layer.kv_heads == 0, file, keys.file(), ": key '",
             keys.key("attention.head_count_kv"), "' is ", layer.kv_heads, "; it must divide the ",
             layer.heads, " attention heads");
  const bool given = keys.document().metadata().contains(keys.key(key_length));
  MICA_CHECK(given || width % layer.heads == 0, file, keys.file(), ": key '",
             keys.key("attention.head_count"), "' is ", layer.heads,
             "; it must divide embedding_length, which is ", width);
  MICA_CHECK(layer.head_dim >= 1 && layer.head_dim <= kernel::max_head_dim, unsupported, keys.file(),
             ": heads of ", layer.head_dim, " numbers; the widest supported is ", kernel::max_head_dim);
  MICA_CHECK(keys.count_or(value_length, 1, kernel::max_head_dim, layer.head_dim) == layer.head_dim,
             unsupported, keys.file(), ": key '", keys.key(value_length),
             "' differs from the key length, which is ", layer.head_dim,
             "; this family does not support that");
}

/// Attention with its heads and a dense feed-forward block with its width in every layer.
[[nodiscard]] inline std::vector<Layer> read_layers(const KeyReader& keys, std::size_t width) {
  const std::size_t n = read_layer_count(keys);
  const std::size_t all = keys.count("block_count", 1, max_layers);  // arrays name every block
  const auto heads = keys.counts("attention.head_count", all, 1, max_heads);
  const auto kv_heads = keys.counts_or("attention.head_count_kv", all, 1, max_heads, 0);
  const bool sparse = keys.count_or("expert_count", 0, max_experts, 0) != 0;
  const auto ff_width = sparse ? keys.counts_or("feed_forward_length", all, 0, max_width, 0)
                               : keys.counts("feed_forward_length", all, 1, max_width);
  std::vector<Layer> layers(n);
  for (std::size_t i = 0; i < n; ++i) {
    block::AttentionConfig& attention = layers[i].add<block::Attention>();
    attention.heads = heads[i];
    attention.kv_heads = kv_heads[i] == 0 ? heads[i] : kv_heads[i];
    read_head_dim(keys, width, attention);
    layers[i].add<block::DenseFeedForward>({.ff_width = ff_width[i]});
  }
  return layers;
}

/// Rows of the embedding: the vocabulary that logits are computed for.
[[nodiscard]] inline std::size_t read_vocabulary_size(const gguf::Document& document) {
  const gguf::TensorInfo* const tensor = document.find(tensor_names::token_embd);
  MICA_CHECK(tensor != nullptr, file, document.metadata().file(), ": tensor '", tensor_names::token_embd,
             "' is missing; a file with a vocabulary alone can tokenize and nothing else");
  return static_cast<std::size_t>(tensor->rows());
}

/// Finite numbers above 0 of an F32 tensor, one per pair; empty when the file has no such tensor.
[[nodiscard]] inline std::vector<float> read_rope_factors(const gguf::Document& document,
                                                          std::string_view name, std::size_t pairs) {
  const gguf::TensorInfo* const tensor = document.find(name);
  if (tensor == nullptr) return {};
  MICA_CHECK(tensor->format.id == format::F32::id && tensor->elements() == pairs, file,
             document.metadata().file(), ": tensor '", name, "' is ", tensor->format.name, " ",
             tensor->shape(), "; needed: F32 ", pairs);
  std::vector<float> factors(pairs);
  document.read(*tensor, writable_bytes_of(factors.data(), factors.size()));
  for (const float f : factors) {
    MICA_CHECK(std::isfinite(f) && f > 0, file, document.metadata().file(), ": tensor '", name, "' holds ", f,
               "; allowed: finite numbers above 0");
  }
  return factors;
}

/// YaRN's numbers.
[[nodiscard]] inline RopeConfig::Yarn read_yarn(const KeyReader& keys, std::size_t n_ctx_train) {
  RopeConfig::Yarn yarn;
  yarn.factor = keys.positive_or("rope.scaling.factor", 1.0);
  yarn.original_context = keys.count_or("rope.scaling.original_context_length", 1, max_context, n_ctx_train);
  yarn.beta_fast = keys.positive_or("rope.scaling.yarn_beta_fast", yarn.beta_fast);
  yarn.beta_slow = keys.positive_or("rope.scaling.yarn_beta_slow", yarn.beta_slow);
  return yarn;
}

/// The rotated numbers of a head; by default the whole head.
[[nodiscard]] inline std::size_t read_rope_dims(const KeyReader& keys, std::size_t head_dim,
                                                std::string_view suffix = "") {
  const std::string name = join("rope.dimension_count", suffix);
  const std::size_t dims = keys.count_or(name, 2, head_dim, head_dim);
  MICA_CHECK(dims % 2 == 0, file, keys.file(), ": key '", keys.key(name), "' is ", dims, "; it must be even");
  return dims;
}

/// Rotary embedding without per-layer differences: base, dimensions, scaling, factors.
[[nodiscard]] inline RopeConfig read_rope(const KeyReader& keys, std::size_t head_dim,
                                          std::size_t n_ctx_train, kernel::RopePairs pairs) {
  RopeConfig rope;
  rope.pairs = pairs;
  rope.dims = read_rope_dims(keys, head_dim);
  rope.base = keys.positive_or("rope.freq_base", 10000.0);
  rope.magnitude = keys.positive_or("rope.scaling.attn_factor", 1.0);
  const std::string scaling = keys.text_or("rope.scaling.type", "linear");
  if (scaling == "linear" || scaling == "longrope") {
    rope.scale = keys.positive_or("rope.scaling.factor", 1.0);
  } else if (scaling == "yarn") {
    rope.yarn = read_yarn(keys, n_ctx_train);
  } else {
    MICA_CHECK(scaling == "none", unsupported, keys.file(), ": key '", keys.key("rope.scaling.type"),
               "' is '", escaped(scaling), "'; supported: none, linear, yarn, longrope");
  }
  const std::size_t n = rope.dims / 2;
  rope.factors = read_rope_factors(keys.document(), tensor_names::rope_freqs, n);
  rope.long_factors = read_rope_factors(keys.document(), tensor_names::rope_factors_long, n);
  if (rope.long_factors.empty()) return rope;
  rope.factors = read_rope_factors(keys.document(), tensor_names::rope_factors_short, n);
  rope.original_context = keys.count_or("rope.scaling.original_context_length", 1, max_context, n_ctx_train);
  return rope;
}

/// Whether layer i has a tensor of that whole name, "attn_q.bias".
[[nodiscard]] inline bool has_tensor(const gguf::Document& document, std::size_t i, std::string_view part) {
  return document.find(tensor_names::layer_plain(i, part)) != nullptr;
}

/// Biases are optional in every family: a file that has them means them.
inline void read_biases(const gguf::Document& document, std::vector<Layer>& layers) {
  for (std::size_t i = 0; i < layers.size(); ++i) {
    block::AttentionConfig& attention = layers[i].get<block::Attention>();
    attention.qkv_bias = has_tensor(document, i, "attn_q.bias") || has_tensor(document, i, "attn_qkv.bias");
    attention.output_bias = has_tensor(document, i, "attn_output.bias");
    layers[i].get<block::DenseFeedForward>().bias = has_tensor(document, i, "ffn_up.bias");
  }
}

/// The names, the sizes, and layers of attention and a dense feed-forward block, with their biases.
/// n_ctx_train: where the file does not say.
[[nodiscard]] inline Config read_sizes(const KeyReader& keys, std::string_view arch,
                                       std::size_t n_ctx_train) {
  Config config;
  config.arch = arch;
  config.name = keys.document().metadata().get<std::string_view>("general.name").value_or("");
  config.n_ctx_train = keys.count_or("context_length", 1, max_context, n_ctx_train);
  config.width = keys.count("embedding_length", 1, max_width);
  config.n_vocab = read_vocabulary_size(keys.document());
  config.layers = read_layers(keys, config.width);
  read_biases(keys.document(), config.layers);
  return config;
}

/// What most families begin with: plain pre-norm layers that attend to everything, and one rope for all.
[[nodiscard]] inline Config read_common(const KeyReader& keys, std::string_view arch,
                                        kernel::RopePairs pairs) {
  Config config = read_sizes(keys, arch, 2048);
  config.norm_epsilon = static_cast<float>(keys.positive("attention.layer_norm_rms_epsilon"));
  config.ropes = {
      read_rope(keys, config.layers.front().get<block::Attention>().head_dim, config.n_ctx_train, pairs)};
  read_pooling(keys, config, Pooling::last);
  return config;
}

}  // namespace mica::arch
