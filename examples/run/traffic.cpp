// SPDX-License-Identifier: Apache-2.0
#include "traffic.hpp"

#include "mica/arch/tensor_names.hpp"

#include <algorithm>
#include <string_view>

namespace mica::program {
namespace {

namespace names = arch::tensor_names;

bool is_embedding(std::string_view name) {
  return name == names::token_embd || name == names::per_layer_token_embd;
}

/// The part of a tensor that one token uses: of experts (width, rows, count) those that are chosen.
double part_used(const gguf::TensorInfo& tensor, const arch::Config& config) {
  if (tensor.name.find("_exps.") == std::string::npos) return 1;
  const double used = static_cast<double>(config.most([](const auto& l) { return l.experts.used; }));
  const double count = static_cast<double>(config.most([](const auto& l) { return l.experts.count; }));
  return count == 0 ? 1 : used / count;
}

/// Tokens that the one at position `tokens` sees in a layer.
std::size_t seen(const arch::LayerConfig& layer, std::size_t tokens) {
  return tokens - std::min(tokens, layer.first_seen(tokens));
}

}  // namespace

std::uint64_t decode_bytes(const gguf::Document& document, const arch::Config& config,
                           const kv::AnyElements<>& elements, std::size_t tokens) {
  const bool tied = !document.contains(names::output);
  double sum = 0;
  for (const gguf::TensorInfo& tensor : document.tensors()) {
    const bool one_row = is_embedding(tensor.name) && !(tied && tensor.name == names::token_embd);
    const double bytes = static_cast<double>(tensor.bytes);
    sum += one_row ? bytes / static_cast<double>(tensor.rows()) : bytes * part_used(tensor, config);
  }
  for (const arch::LayerConfig& layer : config.layers) {
    if (!layer.attends()) continue;
    const std::size_t all = seen(layer, tokens);
    const std::size_t recent = elements.recent() == 0 ? all : std::min(all, elements.recent());
    const std::size_t bytes = recent * kv::tile_bytes(elements, layer.head_dim) +
                              (all - recent) * kv::tile_bytes(elements.old(), layer.head_dim);
    sum += static_cast<double>(layer.kv_heads * bytes) / format::tile_tokens;
  }
  return static_cast<std::uint64_t>(sum);
}

std::uint64_t prefill_macs(const gguf::Document& document, const arch::Config& config, std::size_t tokens) {
  double sum = 0;
  for (const gguf::TensorInfo& tensor : document.tensors()) {
    if (tensor.rows() <= 1 || is_embedding(tensor.name) || tensor.name == names::output) continue;
    sum += static_cast<double>(tensor.elements()) * part_used(tensor, config);
  }
  for (const arch::LayerConfig& layer : config.layers) {
    if (layer.attends()) sum += 2.0 * static_cast<double>(seen(layer, tokens) * layer.q_width());
  }
  return static_cast<std::uint64_t>(sum);
}

}  // namespace mica::program
