// SPDX-License-Identifier: Apache-2.0
//
// Llama, and the families that differ from it in a few numbers: pre-norms, grouped-query attention, SwiGLU, a
// head that may be tied to the embedding.
#pragma once

#include "mica/arch/concept.hpp"
#include "mica/arch/read_experts.hpp"
#include "mica/block/mtp_input.hpp"

#include <cmath>

namespace mica::arch {

/// Llama 2 and 3.x, Mistral, Mixtral and their kin. Adjacent pairs rotate: converters permute the weights for
/// that. All layers may have experts.
struct Llama {
  // Required by Arch
  static constexpr std::string_view name = "llama";
  using Blocks = TypeList<block::Attention, block::DenseFeedForward, block::Experts, block::MtpInput>;

  [[nodiscard]] static Config config(const gguf::Document& document) {
    const KeyReader keys(document, name);
    Config config = read_common(keys, name, kernel::RopePairs::adjacent);
    if (keys.count_or("expert_count", 0, max_experts, 0) == 0) return config;
    for (Layer& layer : config.layers) replace_by_experts(keys, layer, ff_width_of(layer));
    return config;
  }
};

/// Llama 4: three layers in four attend within local chunks and rotate, the fourth attends to everything,
/// does not rotate, and lets its queries grow with the position. Experts are weighted before their block, one
/// is used by a token and one by all.
struct Llama4 {
  // Required by Arch
  static constexpr std::string_view name = "llama4";
  using Blocks = TypeList<block::Attention, block::DenseFeedForward, block::Experts>;

  /// Tokens of a local chunk, and of a step in the growth of queries; files have no keys for both numbers.
  static constexpr std::size_t chunk_tokens = 8192;
  static constexpr float position_scale = 0.1f;  // AttentionConfig::position_scale of layers without a rope
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

/// Granite 3: four numbers of its own scale embeddings, residuals, scores and logits.
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

/// Mistral 3, Ministral 3: queries grow with the position, in steps of the context that YaRN stretches.
struct Mistral3 {
  // Required by Arch
  static constexpr std::string_view name = "mistral3";
  using Blocks = TypeList<block::Attention, block::DenseFeedForward>;

  [[nodiscard]] static Config config(const gguf::Document& document) {
    const KeyReader keys(document, name);
    Config config = read_common(keys, name, kernel::RopePairs::adjacent);
    RopeConfig& rope = config.ropes.front();
    const double multiplier = keys.positive_or("rope.scaling.yarn_log_multiplier", 0.0);
    rope.magnitude /= 1 + 0.1 * multiplier * std::log(rope.yarn.factor);  // YaRN's own growth, undone
    const double growth = keys.positive_or("attention.temperature_scale", 0.0);
    if (growth == 0) return config;
    const std::size_t step =
        keys.count_or("rope.scaling.original_context_length", 1, max_context, config.n_ctx_train);
    for (Layer& layer : config.layers) {
      block::AttentionConfig& attention = layer.get<block::Attention>();
      attention.position_scale = static_cast<float>(growth);
      attention.position_offset = 0;
      attention.position_step = step;
    }
    return config;
  }
};

/// Phi-3 and Phi-4: fused tensors, rotation of halves, and factors for long contexts (longrope) that are
/// chosen by the context a cache is made for. Their sliding window is not applied: no runtime does.
struct Phi3 {
  // Required by Arch
  static constexpr std::string_view name = "phi3";
  using Blocks = TypeList<block::Attention, block::DenseFeedForward>;

  [[nodiscard]] static Config config(const gguf::Document& document) {
    return read_common(KeyReader(document, name), name, kernel::RopePairs::halves);
  }
};

static_assert(Arch<Llama> && Arch<Llama4> && Arch<Granite> && Arch<Mistral3> && Arch<Phi3>);

}  // namespace mica::arch
