// SPDX-License-Identifier: Apache-2.0
//
// Qwen 1.5 and 2 with experts (`qwen2moe`): weights of the chosen experts are not made to sum to 1; one more expert is used by
// every token through a gate.
#pragma once

#include "mica/arch/concept.hpp"
#include "mica/arch/read_keys.hpp"

namespace mica::arch {

struct Qwen2Moe {
  // Required by Arch
  static constexpr std::string_view name = "qwen2moe";

  [[nodiscard]] static Config config(const gguf::Document& document) {
    const KeyReader keys(document, name);
    Config config = read_common(keys, name, kernel::RopePairs::halves);
    const std::size_t used = keys.count("expert_used_count", 1, max_experts);
    for (LayerConfig& layer : config.layers) {
      layer.experts = read_experts(keys, layer.ff_width / used);
      layer.experts.normalized = false;
      layer.experts.shared_ff_width =
          keys.count_or("expert_shared_feed_forward_length", 1, max_width, layer.ff_width);
      layer.experts.shared_gate = true;
      layer.ff_width = 0;
    }
    return config;
  }
};

static_assert(Arch<Qwen2Moe>);

}  // namespace mica::arch
