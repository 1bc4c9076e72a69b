// SPDX-License-Identifier: Apache-2.0
//
// The work of a token: bytes that a decoded one reads, and multiply-adds of a prefilled one. From a header,
// before anything is loaded.
#pragma once

#include "mica/arch/config.hpp"
#include "mica/arch/read_experts.hpp"
#include "mica/arch/tensor_names.hpp"
#include "mica/format/id.hpp"
#include "mica/format/lists.hpp"
#include "mica/gguf/document.hpp"
#include "mica/kv/elements.hpp"
#include "mica_tools/fit/row_work.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace mica::plan {

/// Of weights in one format.
struct FormatWork {
  double decode_bytes = 0;  // that a decoded token reads: of experts those that it chooses
  double decode_macs = 0;   // the multiply-adds that go with them
  double prefill_macs = 0;  // of a token of a prompt, which needs no logits
  double expert_macs = 0;   // of them, with experts
};

/// Keys, or values.
struct KvWork {
  std::string element;      // its name; the old one where elements age
  double number_bytes = 0;  // bytes of each number
};

struct Work {
  std::map<format::Id, FormatWork> weights;  // by their format
  KvWork keys, values;
  std::size_t tokens = 0;                         // the position of the token
  double kv_bytes = 0;                            // of keys and values that a token sees
  double attention_macs = 0;                      // of a token with them
  std::size_t kv_capacity = 0;                    // tokens that an eviction policy keeps; 0: all
  std::vector<block::AttentionConfig> attention;  // of the layers that have it
  double experts_used = 0;                        // by a token, of a layer
  double experts = 0;                             // of that layer; 0: it has none
  RowWork rows;
  double expert_bytes = 0;       // of all experts
  double used_expert_bytes = 0;  // of those that a token chooses

  /// Bytes that are read for a token of an answer.
  [[nodiscard]] double decode_bytes() const noexcept {
    double sum = kv_bytes;
    for (const auto& [id, work] : weights) sum += work.decode_bytes;
    return sum;
  }
  /// Multiplications with an addition for a token of a prompt.
  [[nodiscard]] double prefill_macs() const noexcept {
    double sum = attention_macs;
    for (const auto& [id, work] : weights) sum += work.prefill_macs;
    return sum;
  }
};

namespace detail {

/// Experts that a token uses, of the layer with the most.
[[nodiscard]] inline std::size_t most_used_experts(const arch::Config& config) {
  return std::max(config.max_of<block::Experts>([](const auto& e) { return e.used; }),
                  config.max_of<block::ExpertsBesideDense>([](const auto& e) { return e.experts.used; }));
}

/// The part of a tensor that one token uses: of experts (width, rows, count) those that are chosen.
[[nodiscard]] inline double part_used(const gguf::TensorInfo& tensor, const arch::Config& config) {
  if (tensor.name.find("_exps.") == std::string::npos) return 1;
  const double count = static_cast<double>(arch::largest_mixture(config));
  return count == 0 ? 1 : static_cast<double>(most_used_experts(config)) / count;
}

/// Keys or values in one element, of heads of 128 numbers.
template <class Element>
[[nodiscard]] KvWork kv_work(bool keys) {
  constexpr std::size_t head_dim = 128;
  const std::size_t bytes = keys ? Element::key_tile_bytes(head_dim) : Element::value_tile_bytes(head_dim);
  return {std::string(Element::name), static_cast<double>(bytes) / (head_dim * format::tile_tokens)};
}

/// Whether activations are rounded for products with a format.
[[nodiscard]] inline bool is_integer(format::Id id) {
  bool integer = false;
  format::All::for_each([&](auto type) {
    using F = typename decltype(type)::type;
    integer = integer || (F::id == id && F::arithmetic == format::Arithmetic::integer);
  });
  return integer;
}

/// Whether a tensor is the matrix of a product.
[[nodiscard]] inline bool is_product(const gguf::TensorInfo& tensor) {
  return tensor.rows() > 1 && !tensor.name.ends_with(".bias") && !tensor.name.ends_with("ssm_conv1d.weight");
}

/// Whether a matrix is multiplied as floats in any format (block::Product::in_floats).
[[nodiscard]] inline bool is_decoded(std::string_view name) noexcept {
  constexpr std::string_view gates[] = {".ssm_alpha.", ".ssm_beta.", ".ssm_ba."};
  return std::any_of(std::begin(gates), std::end(gates),
                     [&](std::string_view gate) { return name.find(gate) != name.npos; });
}

/// Tokens that the one at position `tokens` sees in a layer. capacity: of an eviction policy; 0: none.
[[nodiscard]] inline std::size_t seen(const block::AttentionConfig& layer, std::size_t tokens,
                                      std::size_t capacity) noexcept {
  const std::size_t reached = tokens - std::min(tokens, layer.first_seen(tokens));
  return capacity != 0 && layer.reach == block::Reach::all ? std::min(reached, capacity) : reached;
}

}  // namespace detail

/// Of a token at position `tokens`. Tables of which a token takes a row (embeddings) count that row.
/// kv_capacity: of an eviction policy (Plan::kv_capacity).
[[nodiscard]] inline Work work_of(const gguf::Document& document, const arch::Config& config,
                                  const kv::AnyElements<>& elements, std::size_t tokens,
                                  std::size_t kv_capacity = 0) {
  namespace names = arch::tensor_names;
  Work work;
  work.tokens = tokens;
  work.kv_capacity = kv_capacity;
  work.experts = static_cast<double>(arch::largest_mixture(config));
  work.experts_used = static_cast<double>(detail::most_used_experts(config));
  elements.old().visit_keys(
      [&](auto type) { work.keys = detail::kv_work<typename decltype(type)::type>(true); });
  elements.old().visit_values(
      [&](auto type) { work.values = detail::kv_work<typename decltype(type)::type>(false); });
  const bool tied = !document.contains(names::output);
  bool quantized = false;
  for (const gguf::TensorInfo& tensor : document.tensors()) {
    const bool embedding = tensor.name == names::token_embd;
    const bool table = embedding || tensor.name == names::per_layer_token_embd;
    const bool head = tensor.name == names::output || (tied && embedding);
    FormatWork& sum = work.weights[tensor.format.id];
    const double part = detail::part_used(tensor, config);
    if (part < 1) {
      work.expert_bytes += static_cast<double>(tensor.bytes);
      work.used_expert_bytes += static_cast<double>(tensor.bytes) * part;
    }
    if (table && !head) {
      sum.decode_bytes += static_cast<double>(tensor.bytes) / static_cast<double>(tensor.rows());
      continue;
    }
    const double macs = static_cast<double>(tensor.elements()) * part;
    if (detail::is_decoded(tensor.name)) {
      FormatWork& floats = work.weights[format::F32::id];
      floats.decode_bytes += macs * sizeof(float);
      floats.decode_macs += macs;
      floats.prefill_macs += macs;
      continue;
    }
    sum.decode_bytes += static_cast<double>(tensor.bytes) * part;
    if (!detail::is_product(tensor)) continue;
    quantized = quantized || detail::is_integer(tensor.format.id);
    sum.decode_macs += macs;
    if (!head) sum.prefill_macs += macs;
    if (part < 1) sum.expert_macs += macs;
  }
  for (const arch::Layer& layer : config.layers) {
    const auto* const attention = layer.find<block::Attention>();
    if (attention == nullptr) continue;
    const std::size_t all = detail::seen(*attention, tokens, kv_capacity);
    const std::size_t recent = elements.recent() == 0 ? all : std::min(all, elements.recent());
    const std::size_t bytes = recent * kv::tile_bytes(elements, attention->head_dim) +
                              (all - recent) * kv::tile_bytes(elements.old(), attention->head_dim);
    work.kv_bytes += static_cast<double>(attention->kv_heads * bytes) / format::tile_tokens;
    work.attention_macs += 2.0 * static_cast<double>(all * attention->q_width());
    work.attention.push_back(*attention);
  }
  work.rows = row_work_of(config, quantized);
  return work;
}

}  // namespace mica::plan
