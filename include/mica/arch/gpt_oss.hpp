// SPDX-License-Identifier: Apache-2.0
//
// gpt-oss (`gpt-oss`): biases everywhere, a sink per head, a window in every other layer, YaRN, experts with
// a clamped gate. The norm before the experts has the name that Gemma gives to the norm after attention.
#pragma once

#include "mica/arch/concept.hpp"
#include "mica/arch/read_experts.hpp"

namespace mica::arch {

struct GptOss {
  // Required by Arch
  static constexpr std::string_view name = "gpt-oss";
  using Blocks = TypeList<block::Attention, block::Experts>;

  [[nodiscard]] static Config config(const gguf::Document& document) {
    const KeyReader keys(document, name);
    Config config = read_common(keys, name, kernel::RopePairs::halves);
    const std::size_t window = keys.count("attention.sliding_window", 1, max_context);
    for (std::size_t i = 0; i < config.layers.size(); ++i) {
      Layer& layer = config.layers[i];
      block::AttentionConfig& attention = layer.get<block::Attention>();
      attention.qkv_bias = attention.output_bias = attention.sinks = true;
      if (i % 2 == 0) attention.look_through_window(window);
      auto& experts = replace_by_experts(keys, layer, ff_width_of(layer));
      experts.bias = true;
      experts.gate = kernel::Gate::clamped;
      experts.norm = "post_attention_norm";
    }
    return config;
  }
};

static_assert(Arch<GptOss>);

}  // namespace mica::arch
