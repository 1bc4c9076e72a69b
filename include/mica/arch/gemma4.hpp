// SPDX-License-Identifier: Apache-2.0
//
// Gemma 4 (`gemma4`): layers with a window have smaller heads and a rope of their own, the last ones read the keys and values of
// earlier ones, values may be keys, every layer adds an embedding of its own, and experts may run beside a dense block.
#pragma once

#include "mica/arch/concept.hpp"
#include "mica/arch/read_gemma.hpp"

namespace mica::arch {

struct Gemma4 {
  // Required by Arch
  static constexpr std::string_view name = "gemma4";

  [[nodiscard]] static Config config(const gguf::Document& document) {
    const KeyReader keys(document, name);
    Config config = read_gemma(keys, name);
    const std::size_t n = config.layers.size();
    config.per_layer_width = keys.count_or("embedding_length_per_layer_input", 0, max_width, 0);
    const std::size_t window = keys.count("attention.sliding_window", 1, max_context);
    const std::vector<bool> windows = read_windows(keys, n, 6);
    for (std::size_t i = 0; i < n; ++i) {
      LayerConfig& layer = config.layers[i];
      layer.post_norms = true;
      layer.head_norm = block::HeadNorm::weighted;
      layer.v_norm = true;
      layer.attention_scale = 1;
      layer.v_from_k = !has_tensor(document, i, "attn_v.weight");
      layer.output_scale = has_tensor(document, i, "layer_output_scale.weight");
      if (has_tensor(document, i, "ffn_gate_inp.weight")) add_experts(keys, layer);
      if (windows[i]) {
        read_head_dim(keys, config.width, layer, "_swa");
        look_through_window(layer, window);
        layer.rope = 1;
      }
    }
    share_keys_and_values(keys, config, windows);
    add_ropes(keys, config, windows);
    return config;
  }

 private:
  static void add_experts(const KeyReader& keys, LayerConfig& layer) {
    layer.experts = read_experts(keys, 0);
    layer.experts.scaled_router = true;
    layer.experts.beside_dense = true;
  }

  /// Heads of either kind rotate in their own way; factors are those of layers without a window.
  static void add_ropes(const KeyReader& keys, Config& config, const std::vector<bool>& windows) {
    std::size_t full = 0, narrow = 0;
    for (std::size_t i = 0; i < windows.size(); ++i) {
      (windows[i] ? narrow : full) = config.layers[i].head_dim;
    }
    if (full != 0)
      config.ropes.front() = read_rope(keys, full, config.n_ctx_train, kernel::RopePairs::halves);
    add_window_rope(keys, config, narrow == 0 ? 2 : read_rope_dims(keys, narrow, "_swa"));
  }
};

static_assert(Arch<Gemma4>);

}  // namespace mica::arch
