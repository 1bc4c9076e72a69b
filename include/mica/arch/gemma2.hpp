// SPDX-License-Identifier: Apache-2.0
//
// Gemma 2 (`gemma2`): norms on both sides of both blocks, soft caps on scores and logits, a window in every
// other layer.
#pragma once

#include "mica/arch/concept.hpp"
#include "mica/arch/read_gemma.hpp"

namespace mica::arch {

struct Gemma2 {
  // Required by Arch
  static constexpr std::string_view name = "gemma2";
  using Blocks = TypeList<block::Attention, block::DenseFeedForward>;

  [[nodiscard]] static Config config(const gguf::Document& document) {
    const KeyReader keys(document, name);
    Config config = read_gemma(keys, name);
    config.logit_softcap = static_cast<float>(keys.positive_or("final_logit_softcapping", 30.0));
    const std::size_t window = keys.count("attention.sliding_window", 1, max_context);
    const std::vector<bool> windows = read_windows(keys, config.layers.size(), 2);
    for (std::size_t i = 0; i < config.layers.size(); ++i) {
      add_post_norms(config.layers[i]);
      block::AttentionConfig& attention = config.layers[i].get<block::Attention>();
      attention.attention_softcap = static_cast<float>(keys.positive_or("attn_logit_softcapping", 50.0));
      attention.attention_scale = gemma_attention_scale(config, attention, 46);
      if (windows[i]) attention.look_through_window(window);
    }
    return config;
  }
};

static_assert(Arch<Gemma2>);

}  // namespace mica::arch
