// SPDX-License-Identifier: Apache-2.0
//
// Gemma 4 (`gemma4`): layers with a window have smaller heads and a rope of their own, the last ones read the
// keys and values of earlier ones, values may be keys, every layer adds an embedding of its own, and experts
// may run beside a dense block.
#pragma once

#include "mica/arch/concept.hpp"
#include "mica/arch/gemma.hpp"
#include "mica/arch/read_experts.hpp"
#include "mica/block/experts_beside_dense.hpp"
#include "mica/block/output_scale.hpp"
#include "mica/block/per_layer.hpp"

namespace mica::arch {

struct Gemma4 {
  // Required by Arch
  static constexpr std::string_view name = "gemma4";
  using Blocks = TypeList<block::Attention, block::DenseFeedForward, block::ExpertsBesideDense,
                          block::LayerInputs, block::PerLayerEmbedding, block::OutputScale>;

  [[nodiscard]] static Config config(const gguf::Document& document) {
    const KeyReader keys(document, name);
    Config config = read_gemma(keys, name);
    const std::size_t n = config.layers.size();
    const block::LayerInputs::Config inputs{
        .width = keys.count_or("embedding_length_per_layer_input", 0, max_width, 0), .layers = n};
    if (inputs.width != 0) config.begin.add<block::LayerInputs>(inputs);
    const std::size_t window = keys.count("attention.sliding_window", 1, max_context);
    const std::vector<bool> windows = read_windows(keys, n, 6);
    for (std::size_t i = 0; i < n; ++i) {
      Layer& layer = config.layers[i];
      add_post_norms(layer);
      block::AttentionConfig& attention = layer.get<block::Attention>();
      attention.head_norm = block::HeadNorm::weighted;
      attention.v_norm = true;
      attention.attention_scale = 1;
      attention.v_from_k = !has_tensor(document, i, "attn_v.weight");
      if (windows[i]) {
        read_head_dim(keys, config.width, attention, "_swa");
        attention.look_through_window(window);
        attention.rope = 1;
      }
      if (has_tensor(document, i, "ffn_gate_inp.weight")) add_experts(keys, layer);
      if (inputs.width != 0) layer.add<block::PerLayerEmbedding>({inputs, i, kernel::Gate::gelu});
      if (has_tensor(document, i, "layer_output_scale.weight")) layer.add<block::OutputScale>();
    }
    share_keys_and_values(keys, config, windows);
    add_ropes(keys, config, windows);
    return config;
  }

 private:
  static void add_experts(const KeyReader& keys, Layer& layer) {
    block::ExpertsConfig experts = read_experts(keys, 0);
    experts.scaled_router = true;
    experts.gate = kernel::Gate::gelu;
    const block::DenseFeedForward::Config dense = layer.get<block::DenseFeedForward>();
    layer.replace<block::DenseFeedForward, block::ExpertsBesideDense>({dense, experts});
  }

  /// Heads of either kind rotate in their own way; factors are those of layers without a window.
  static void add_ropes(const KeyReader& keys, Config& config, const std::vector<bool>& windows) {
    std::size_t full = 0, narrow = 0;
    for (std::size_t i = 0; i < windows.size(); ++i) {
      (windows[i] ? narrow : full) = config.layers[i].get<block::Attention>().head_dim;
    }
    if (full != 0)
      config.ropes.front() = read_rope(keys, full, config.n_ctx_train, kernel::RopePairs::halves);
    add_window_rope(keys, config, narrow == 0 ? 2 : read_rope_dims(keys, narrow, "_swa"));
  }
};

static_assert(Arch<Gemma4>);

}  // namespace mica::arch
