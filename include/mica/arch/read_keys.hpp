// SPDX-License-Identifier: Apache-2.0
//
// The keys that every family shares, read with their ranges. A value out of range is refused by key, number found and
// numbers allowed.
#pragma once

#include "mica/arch/config.hpp"
#include "mica/arch/tensor_names.hpp"
#include "mica/base/assert.hpp"
#include "mica/gguf/reader.hpp"
#include "mica/kernel/attention.hpp"

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

namespace mica::arch {

/// Reads `<arch>.<key>` of one document.
class KeyReader {
 public:
  KeyReader(const gguf::Document& document, std::string_view arch)
      : document_(document), prefix_(join(arch, ".")) {}

  [[nodiscard]] std::string key(std::string_view name) const { return prefix_ + std::string(name); }

  /// A count in [least, most]; required.
  [[nodiscard]] std::size_t count(std::string_view name, std::uint64_t least, std::uint64_t most) const {
    return in_range(name, document_.metadata().require<std::uint64_t>(key(name)), least, most);
  }
  /// A count in [least, most]; `otherwise` when the file has no such key.
  [[nodiscard]] std::size_t count_or(std::string_view name, std::uint64_t least, std::uint64_t most,
                                     std::size_t otherwise) const {
    const auto found = document_.metadata().get<std::uint64_t>(key(name));
    return found ? in_range(name, *found, least, most) : otherwise;
  }
  /// One count per layer in [least, most], given as one number or as an array; required.
  [[nodiscard]] std::vector<std::size_t> counts(std::string_view name, std::size_t layers,
                                                std::uint64_t least, std::uint64_t most) const {
    MICA_CHECK(document_.metadata().contains(key(name)), file, file(), ": key '", key(name),
               "' is missing; needed: one number, or one for each layer");
    return counts_or(name, layers, least, most, 0);
  }
  /// The same; `otherwise` for every layer when the file has no such key.
  [[nodiscard]] std::vector<std::size_t> counts_or(std::string_view name, std::size_t layers,
                                                   std::uint64_t least, std::uint64_t most,
                                                   std::size_t otherwise) const {
    const auto found = document_.metadata().get_each<std::uint64_t>(key(name), layers);
    std::vector<std::size_t> out(layers, otherwise);
    for (std::size_t i = 0; found && i < layers; ++i) out[i] = in_range(name, (*found)[i], least, most);
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
  [[nodiscard]] std::string text_or(std::string_view name, std::string_view otherwise) const {
    return std::string(document_.metadata().get<std::string_view>(key(name)).value_or(otherwise));
  }

  [[nodiscard]] const gguf::Document& document() const noexcept { return document_; }
  [[nodiscard]] const std::string& file() const noexcept { return document_.metadata().file(); }

 private:
  [[nodiscard]] std::size_t in_range(std::string_view name, std::uint64_t found, std::uint64_t least,
                                     std::uint64_t most) const {
    MICA_CHECK(found >= least && found <= most, file, file(), ": key '", key(name), "' is ", found,
               "; allowed: ", least, " to ", most);
    return static_cast<std::size_t>(found);
  }
  void require_positive(std::string_view name, double found) const {
    MICA_CHECK(std::isfinite(found) && found > 0, file, file(), ": key '", key(name), "' is ", found,
               "; allowed: finite numbers above 0");
  }

  const gguf::Document& document_;
  std::string prefix_;
};

inline constexpr std::size_t max_layers = 4096;
inline constexpr std::size_t max_width = std::size_t{1} << 20;
inline constexpr std::size_t max_heads = std::size_t{1} << 14;
inline constexpr std::size_t max_context = std::size_t{1} << 30;

/// Heads, KV heads, head_dim and feed-forward width of every layer.
[[nodiscard]] inline std::vector<LayerConfig> read_layers(const KeyReader& keys, std::size_t width) {
  const std::size_t n = keys.count("block_count", 1, max_layers);
  const auto heads = keys.counts("attention.head_count", n, 1, max_heads);
  const auto kv_heads = keys.counts_or("attention.head_count_kv", n, 1, max_heads, 0);
  const auto ff_width = keys.counts("feed_forward_length", n, 1, max_width);
  std::vector<LayerConfig> layers(n);
  for (std::size_t i = 0; i < n; ++i) {
    LayerConfig& layer = layers[i];
    layer.heads = heads[i];
    layer.kv_heads = kv_heads[i] == 0 ? heads[i] : kv_heads[i];
    layer.head_dim = keys.count_or("attention.key_length", 1, kernel::max_head_dim, width / layer.heads);
    layer.ff_width = ff_width[i];
    MICA_CHECK(layer.heads % layer.kv_heads == 0, file, keys.file(), ": key '",
               keys.key("attention.head_count_kv"), "' is ", layer.kv_heads, "; it must divide the ",
               layer.heads, " attention heads");
    const bool given = keys.document().metadata().contains(keys.key("attention.key_length"));
    MICA_CHECK(given || width % layer.heads == 0, file, keys.file(), ": key '",
               keys.key("attention.head_count"), "' is ", layer.heads,
               "; it must divide embedding_length, which is ", width);
    MICA_CHECK(layer.head_dim <= kernel::max_head_dim, unsupported, keys.file(), ": heads of ",
               layer.head_dim, " numbers; the widest supported is ", kernel::max_head_dim);
    MICA_CHECK(
        keys.count_or("attention.value_length", 1, kernel::max_head_dim, layer.head_dim) == layer.head_dim,
        unsupported, keys.file(), ": key '", keys.key("attention.value_length"),
        "' differs from the key length, which is ", layer.head_dim, "; this family does not support that");
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

/// The factors of `rope_freqs.weight`, if the file has one.
[[nodiscard]] inline std::vector<float> read_rope_factors(const gguf::Document& document, std::size_t pairs) {
  const gguf::TensorInfo* const tensor = document.find(tensor_names::rope_freqs);
  if (tensor == nullptr) return {};
  MICA_CHECK(tensor->format.id == format::Id::F32 && tensor->elements() == pairs, file,
             document.metadata().file(), ": tensor '", tensor_names::rope_freqs, "' is ", tensor->format.name,
             " ", tensor->shape(), "; needed: F32 ", pairs);
  std::vector<float> factors(pairs);
  document.read(*tensor, std::as_writable_bytes(std::span(factors)));
  for (const float f : factors) {
    MICA_CHECK(std::isfinite(f) && f > 0, file, document.metadata().file(), ": tensor '",
               tensor_names::rope_freqs, "' holds ", f, "; allowed: finite numbers above 0");
  }
  return factors;
}

/// Rotary embedding without per-layer differences: base, dimensions, linear scaling, factors.
[[nodiscard]] inline RopeConfig read_rope(const KeyReader& keys, std::size_t head_dim,
                                          kernel::RopePairs pairs) {
  RopeConfig rope;
  rope.pairs = pairs;
  rope.dims = keys.count_or("rope.dimension_count", 2, head_dim, head_dim);
  MICA_CHECK(rope.dims % 2 == 0, file, keys.file(), ": key '", keys.key("rope.dimension_count"), "' is ",
             rope.dims, "; it must be even");
  rope.base = keys.positive_or("rope.freq_base", 10000.0);
  const std::string scaling = keys.text_or("rope.scaling.type", "none");
  MICA_CHECK(scaling == "none" || scaling == "linear", unsupported, keys.file(), ": key '",
             keys.key("rope.scaling.type"), "' is '", escaped(scaling), "'; supported: none, linear");
  if (scaling == "linear") rope.scale = keys.positive_or("rope.scaling.factor", 1.0);
  rope.factors = read_rope_factors(keys.document(), rope.dims / 2);
  return rope;
}

}  // namespace mica::arch
