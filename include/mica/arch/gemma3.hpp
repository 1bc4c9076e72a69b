// SPDX-License-Identifier: Apache-2.0
//
// Gemma 3 (`gemma3`): norms on both sides of both blocks and on queries and keys; five layers with a window
// and a rope of their own to one without.
#pragma once

#include "mica/arch/concept.hpp"
#include "mica/arch/read_gemma.hpp"

namespace mica::arch {

struct Gemma3 {
  // Required by Arch
  static constexpr std::string_view name = "gemma3";
  using Blocks = TypeList<block::Attention, block::DenseFeedForward>;

  [[nodiscard]] static Config config(const gguf::Document& document) {
    const KeyReader keys(document, name);
    Config config = read_gemma(keys, name);
    const std::size_t window = keys.count_or("attention.sliding_window", 0, max_context, 0);
    const std::vector<bool> windows = read_windows(keys, config.layers.size(), 6);
    add_window_rope(keys, config, config.ropes.front().dims);
    for (std::size_t i = 0; i < config.layers.size(); ++i) {
      add_post_norms(config.layers[i]);
      block::AttentionConfig& attention = config.layers[i].get<block::Attention>();
      attention.head_norm = block::HeadNorm::weighted;
      attention.attention_scale = gemma_attention_scale(config, attention, 62);
      if (window == 0 || !windows[i]) continue;
      attention.look_through_window(window);
      attention.rope = 1;
    }
    return config;
  }
};

static_assert(Arch<Gemma3>);

}  // namespace mica::arch
