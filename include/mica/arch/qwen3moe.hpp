// SPDX-License-Identifier: Apache-2.0
//
// Qwen 3 with experts (`qwen3moe`).
#pragma once

#include "mica/arch/concept.hpp"
#include "mica/arch/read_keys.hpp"

namespace mica::arch {

struct Qwen3Moe {
  // Required by Arch
  static constexpr std::string_view name = "qwen3moe";

  [[nodiscard]] static Config config(const gguf::Document& document) {
    const KeyReader keys(document, name);
    Config config = read_common(keys, name, kernel::RopePairs::halves);
    const std::size_t used = keys.count("expert_used_count", 1, max_experts);
    for (LayerConfig& layer : config.layers) {
      layer.head_norm = block::HeadNorm::weighted;
      layer.experts = read_experts(keys, layer.ff_width / used);
      layer.ff_width = 0;
    }
    return config;
  }
};

static_assert(Arch<Qwen3Moe>);

}  // namespace mica::arch
