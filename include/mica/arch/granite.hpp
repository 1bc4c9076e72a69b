// SPDX-License-Identifier: Apache-2.0
//
// Granite 3 (`granite`): Llama with four numbers of its own that scale embeddings, residuals, scores and
// logits.
#pragma once

#include "mica/arch/concept.hpp"
#include "mica/arch/read_keys.hpp"

namespace mica::arch {

struct Granite {
  // Required by Arch
  static constexpr std::string_view name = "granite";
  using Blocks = TypeList<block::Attention, block::DenseFeedForward>;

  [[nodiscard]] static Config config(const gguf::Document& document) {
    const KeyReader keys(document, name);
    const auto number = [&](std::string_view key) { return static_cast<float>(keys.positive_or(key, 1.0)); };
    Config config = read_common(keys, name, kernel::RopePairs::adjacent);
    config.embedding_scale = number("embedding_scale");
    config.residual_scale = number("residual_scale");
    config.logit_scale = 1 / number("logit_scale");
    const bool rotates = keys.flag_or("rope.scaling.finetuned", true);
    for (Layer& layer : config.layers) {
      block::AttentionConfig& attention = layer.get<block::Attention>();
      if (!rotates) attention.rope = block::none;
      attention.attention_scale = static_cast<float>(keys.positive_or("attention.scale", 0.0));
    }
    return config;
  }
};

static_assert(Arch<Granite>);

}  // namespace mica::arch
