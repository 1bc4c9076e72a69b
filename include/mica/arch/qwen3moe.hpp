// SPDX-License-Identifier: Apache-2.0
//
// Qwen 3 with experts (`qwen3moe`).
#pragma once

#include "mica/arch/concept.hpp"
#include "mica/arch/read_experts.hpp"

namespace mica::arch {

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
      const std::size_t ff_width = layer.get<block::DenseFeedForward>().ff_width;
      layer.replace<block::DenseFeedForward, block::Experts>(read_experts(keys, ff_width / used));
    }
    return config;
  }
};

static_assert(Arch<Qwen3Moe>);

}  // namespace mica::arch
