// SPDX-License-Identifier: Apache-2.0
//
// Llama 4 (`llama4`): three layers in four attend within local chunks and rotate, the fourth attends to
// everything, does not rotate, and lets its queries grow with the position. Experts are weighted before their
// block, one is used by a token and one by all.
#pragma once

#include "mica/arch/concept.hpp"
#include "mica/arch/read_experts.hpp"

namespace mica::arch {

struct Llama4 {
  // Required by Arch
  static constexpr std::string_view name = "llama4";
  using Blocks = TypeList<block::Attention, block::DenseFeedForward, block::Experts>;

  /// Tokens of a local chunk, and of a step in the growth of queries; files have no keys for them.
  static constexpr std::size_t chunk_tokens = 8192;
  static constexpr float position_scale = 0.1f;
  /// One layer in this number neither rotates nor attends within its local chunk.
  static constexpr std::size_t full_interval = 4;
  /// The model with this number of experts has no norms of queries and keys; files have no key for it.
  static constexpr std::size_t experts_without_norm = 128;

  [[nodiscard]] static Config config(const gguf::Document& document) {
    const KeyReader keys(document, name);
    Config config = read_common(keys, name, kernel::RopePairs::adjacent);
    const std::size_t step = keys.count("interleave_moe_layer_step", 0, max_layers);
    const bool chunks = keys.count_or("attention.sliding_window", 0, max_context, chunk_tokens) != 0;
    const std::size_t experts = keys.count_or("expert_count", 0, max_experts, 0);
    for (std::size_t i = 0; i < config.layers.size(); ++i) {
      Layer& layer = config.layers[i];
      block::AttentionConfig& attention = layer.get<block::Attention>();
      if (experts != experts_without_norm) attention.head_norm = block::HeadNorm::plain_after_rope;
      if (chunks) place(i, attention);
      if (experts == 0 || step == 0 || (i + 1) % step != 0) continue;
      auto& chosen = replace_by_experts(keys, layer, ff_width_of(layer));
      chosen.routing = block::Routing::sigmoid;
      chosen.normalized = false;
      chosen.weighted_input = true;
      chosen.shared_ff_width = chosen.ff_width;
    }
    return config;
  }

 private:
  static void place(std::size_t i, block::AttentionConfig& attention) {
    if ((i + 1) % full_interval == 0) {
      attention.rope = block::none;
      attention.position_scale = position_scale;
      attention.position_step = chunk_tokens;
    } else {
      attention.reach = block::Reach::chunk;
      attention.reach_tokens = chunk_tokens;
    }
  }
};

static_assert(Arch<Llama4>);

}  // namespace mica::arch
