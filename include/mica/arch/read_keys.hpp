// SPDX-License-Identifier: Apache-2.0
//
// The keys that every family shares, read with their ranges. A value out of range is refused by key, number
// found and numbers allowed.
#pragma once

#include "mica/arch/config.hpp"
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

/// The maxima of keys: a file with a larger number is refused.
inline constexpr std::size_t max_layers = 4096;
inline constexpr std::size_t max_width = std::size_t{1} << 20;
inline constexpr std::size_t max_heads = std::size_t{1} << 14;
inline constexpr std::size_t max_experts = std::size_t{1} << 12;
inline constexpr std::size_t max_context = std::size_t{1} << 30;

/// Reads `<arch>.<key>` of one document.
class KeyReader {
 public:
  /// arch: the part of keys before the first dot. The document outlives this.
  KeyReader(gguf::DocumentRef document, std::string_view arch)
      : document_(document), prefix_(join(arch, ".")) {}

  /// The whole key of a name: "llama.block_count".
  [[nodiscard]] std::string key(std::string_view name) const { return prefix_ + std::string(name); }

  /// A count in [min, max]; required.
  [[nodiscard]] std::size_t count(std::string_view name, std::uint64_t min, std::uint64_t max) const {
    return in_range(name, document_.metadata().require<std::uint64_t>(key(name)), min, max);
  }
  /// A count in [min, max]; `otherwise` when the file has no such key.
  [[nodiscard]] std::size_t count_or(std::string_view name, std::uint64_t min, std::uint64_t max,
                                     std::size_t otherwise) const {
    const auto found = document_.metadata().get<std::uint64_t>(key(name));
    return found ? in_range(name, *found, min, max) : otherwise;
  }
  /// One count per layer in [min, max], given as one number or as an array; required.
  [[nodiscard]] std::vector<std::size_t> counts(std::string_view name, std::size_t layers, std::uint64_t min,
                                                std::uint64_t max) const {
    MICA_CHECK(document_.metadata().contains(key(name)), file, file(), ": key '", key(name),
               "' is missing; needed: one number, or one for each layer");
    return counts_or(name, layers, min, max, 0);
  }
  /// The same; `otherwise` for every layer when the file has no such key.
  [[nodiscard]] std::vector<std::size_t> counts_or(std::string_view name, std::size_t layers,
                                                   std::uint64_t min, std::uint64_t max,
                                                   std::size_t otherwise) const {
    const auto found = document_.metadata().get_each<std::uint64_t>(key(name), layers);
    std::vector<std::size_t> out(layers, otherwise);
    for (std::size_t i = 0; i < found.size(); ++i) out[i] = in_range(name, found[i], min, max);
    return out;
  }
  /// A finite positive number; `otherwise` when the file has no such key.
  [[nodiscard]] double positive_or(std::string_view name, double otherwise) const {
    const auto found = document_.metadata().get<double>(key(name));
    if (found) require_positive(name, *found);
    return found.value_or(otherwise);
  }
  /// A finite positive number; required.
  [[nodiscard]] double positive(std::string_view name) const {
    const double found = document_.metadata().require<double>(key(name));
    require_positive(name, found);
    return found;
  }
  /// One flag per layer, given as an array, as one flag, or as a number p: every p-th layer is false. Empty
  /// without a key.
  [[nodiscard]] std::vector<bool> pattern(std::string_view name, std::size_t layers) const {
    const auto found = document_.metadata().find(key(name));
    if (!found) return {};
    if (found->is_array() || found->type() == gguf::ValueType::boolean) {
      return document_.metadata().get_each<bool>(key(name), layers);
    }
    const std::size_t every = count(name, 1, max_layers);
    std::vector<bool> flags(layers, false);
    for (std::size_t i = 0; i < layers; ++i) flags[i] = every > 1 && (i + 1) % every != 0;
    return flags;
  }
  /// A boolean, or a text; `otherwise` when the file has no such key.
  [[nodiscard]] bool flag_or(std::string_view name, bool otherwise) const {
    return document_.metadata().get<bool>(key(name)).value_or(otherwise);
  }
  [[nodiscard]] std::string text_or(std::string_view name, std::string_view otherwise) const {
    return std::string(document_.metadata().get<std::string_view>(key(name)).value_or(otherwise));
  }

  /// The document, and its path as error texts name it.
  [[nodiscard]] const gguf::Document& document() const noexcept { return document_; }
  [[nodiscard]] const std::string& file() const noexcept { return document_.metadata().file(); }

 private:
  [[nodiscard]] std::size_t in_range(std::string_view name, std::uint64_t found, std::uint64_t min,
                                     std::uint64_t max) const {
    MICA_CHECK(found >= min && found <= max, file, file(), ": key '", key(name), "' is ", found,
               "; allowed: ", min, " to ", max);
    return static_cast<std::size_t>(found);
  }
  void require_positive(std::string_view name, double found) const {
    MICA_CHECK(std::isfinite(found) && found > 0, file, file(), ": key '", key(name), "' is ", found,
               "; allowed: finite numbers above 0");
  }

  const gguf::Document& document_;
  std::string prefix_;
};

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

/// What most families begin with: plain pre-norm layers that attend to everything, and one rope for all.
[[nodiscard]] inline Config read_common(const KeyReader& keys, std::string_view arch,
                                        kernel::RopePairs pairs) {
  Config config;
  config.arch = arch;
  config.name = keys.document().metadata().get<std::string_view>("general.name").value_or("");
  config.n_ctx_train = keys.count_or("context_length", 1, max_context, 2048);
  config.width = keys.count("embedding_length", 1, max_width);
  config.n_vocab = read_vocabulary_size(keys.document());
  config.layers = read_layers(keys, config.width);
  read_biases(keys.document(), config.layers);
  config.norm_epsilon = static_cast<float>(keys.positive("attention.layer_norm_rms_epsilon"));
  config.ropes = {
      read_rope(keys, config.layers.front().get<block::Attention>().head_dim, config.n_ctx_train, pairs)};
  return config;
}

}  // namespace mica::arch
