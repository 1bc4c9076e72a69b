// SPDX-License-Identifier: Apache-2.0
//
// Qwen 1.5 to 3: Llama with rotation of halves, and with biases on queries, keys and values or norms of
// queries and keys. Those with delta nets follow in arch/qwen_delta_net.hpp.
#pragma once

#include "mica/arch/concept.hpp"
#include "mica/arch/read_experts.hpp"

namespace mica::arch {

/// Qwen 2 and 2.5: biases, which are read wherever a file has them.
struct Qwen2 {
  // Required by Arch
  static constexpr std::string_view name = "qwen2";
  using Blocks = TypeList<block::Attention, block::DenseFeedForward>;

  [[nodiscard]] static Config config(const gguf::Document& document) {
    return read_common(KeyReader(document, name), name, kernel::RopePairs::halves);
  }
};

/// Qwen 1.5 and 2 with experts: weights of the chosen experts are not made to sum to 1; one more expert is
/// used by every token through a gate.
struct Qwen2Moe {
  // Required by Arch
  static constexpr std::string_view name = "qwen2moe";
  using Blocks = TypeList<block::Attention, block::Experts>;

  [[nodiscard]] static Config config(const gguf::Document& document) {
    const KeyReader keys(document, name);
    Config config = read_common(keys, name, kernel::RopePairs::halves);
    const std::size_t used = keys.count("expert_used_count", 1, max_experts);
    for (Layer& layer : config.layers) {
      const std::size_t ff_width = ff_width_of(layer);
      auto& experts = replace_by_experts(keys, layer, ff_width / used);
      experts.normalized = false;
      experts.shared_ff_width = keys.count_or("expert_shared_feed_forward_length", 1, max_width, ff_width);
      experts.shared_gate = true;
    }
    return config;
  }
};

/// Qwen 3: norms of queries and keys instead of biases. Its rerankers give probabilities.
struct Qwen3 {
  // Required by Arch
  static constexpr std::string_view name = "qwen3";
  using Blocks = TypeList<block::Attention, block::DenseFeedForward>;

  [[nodiscard]] static Config config(const gguf::Document& document) {
    Config config = read_common(KeyReader(document, name), name, kernel::RopePairs::halves);
    config.probabilities = config.ranks;
    for (Layer& layer : config.layers) layer.get<block::Attention>().head_norm = block::HeadNorm::weighted;
    return config;
  }
};

/// Qwen 3 with experts.
struct Qwen3Moe {
  // Required by Arch
  static constexpr std::string_view name = "qwen3moe";
  using Blocks = TypeList<block::Attention, block::Experts>;

  [[nodiscard]] static Config config(const gguf::Document& document) {
    const KeyReader keys(document, name);
    Config config = read_common(keys, name, kernel::RopePairs::halves);
    const std::size_t used = keys.count("expert_used_count", 1, max_experts);
    for (Layer& layer : config.layers) {
      layer.get<block::Attention>().head_norm = block::HeadNorm::weighted;
      replace_by_experts(keys, layer, ff_width_of(layer) / used);
    }
    return config;
  }
};

static_assert(Arch<Qwen2> && Arch<Qwen2Moe> && Arch<Qwen3> && Arch<Qwen3Moe>);

}  // namespace mica::arch
