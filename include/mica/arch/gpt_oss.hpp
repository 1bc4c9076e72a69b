// SPDX-License-Identifier: Apache-2.0
//
// gpt-oss (`gpt-oss`): biases everywhere, a sink per head, a window in every other layer, YaRN, experts with a clamped gate. The
// norm before the experts has the name that Gemma gives to the norm after attention.
#pragma once

#include "mica/arch/concept.hpp"
#include "mica/arch/read_keys.hpp"

namespace mica::arch {

struct GptOss {
  // Required by Arch
  static constexpr std::string_view name = "gpt-oss";

  [[nodiscard]] static Config config(const gguf::Document& document) {
    const KeyReader keys(document, name);
    Config config = read_common(keys, name, kernel::RopePairs::halves);
    config.ffn_norm = "post_attention_norm";
    const std::size_t window = keys.count("attention.sliding_window", 1, max_context);
    for (std::size_t i = 0; i < config.layers.size(); ++i) {
      LayerConfig& layer = config.layers[i];
      layer.qkv_bias = layer.output_bias = layer.expert_bias = layer.sinks = true;
      layer.gate = kernel::Gate::clamped;
      layer.experts = read_experts(keys, layer.ff_width);
      layer.ff_width = 0;
      if (i % 2 != 0) continue;
      layer.reach = block::Reach::window;
      layer.reach_tokens = window;
    }
    return config;
  }
};

static_assert(Arch<GptOss>);

}  // namespace mica::arch
