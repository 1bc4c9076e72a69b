// SPDX-License-Identifier: Apache-2.0
//
// Qwen 1.5 and 2 with experts (`qwen2moe`): weights of the chosen experts are not made to sum to 1; one more
// expert is used by every token through a gate.
#pragma once

#include "mica/arch/concept.hpp"
#include "mica/arch/read_experts.hpp"

namespace mica::arch {

struct Qwen2Moe {
  // Required by Arch
  static constexpr std::string_view name = "qwen2moe";
  using Blocks = TypeList<block::Attention, block::Experts>;

  [[nodiscard]] static Config config(const gguf::Document& document) {
    const KeyReader keys(document, name);
    Config config = read_common(keys, name, kernel::RopePairs::halves);
    const std::size_t used = keys.count("expert_used_count", 1, max_experts);
    for (Layer& layer : config.layers) {
      const std::size_t ff_width = layer.get<block::DenseFeedForward>().ff_width;
      auto& experts =
          layer.replace<block::DenseFeedForward, block::Experts>(read_experts(keys, ff_width / used));
      experts.normalized = false;
      experts.shared_ff_width = keys.count_or("expert_shared_feed_forward_length", 1, max_width, ff_width);
      experts.shared_gate = true;
    }
    return config;
  }
};

static_assert(Arch<Qwen2Moe>);

}  // namespace mica::arch
