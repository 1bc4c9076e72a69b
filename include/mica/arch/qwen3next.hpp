// SPDX-License-Identifier: Apache-2.0
//
// Qwen3-Next (`qwen3next`): gated delta nets and gated attention over experts. Value heads of one key head
// lie together, and the two gates of a delta net come in one tensor.
#pragma once

#include "mica/arch/concept.hpp"
#include "mica/arch/read_delta_net.hpp"

namespace mica::arch {

struct Qwen3Next {
  // Required by Arch
  static constexpr std::string_view name = "qwen3next";
  using Blocks = TypeList<block::Attention, block::DeltaNet, block::DenseFeedForward, block::Experts>;

  [[nodiscard]] static Config config(const gguf::Document& document) {
    const KeyReader keys(document, name);
    Config config = read_delta_net_model(keys, name);
    for (Layer& layer : config.layers) {
      if (!layer.has<block::DeltaNet>()) continue;
      layer.get<block::DeltaNet>().heads_interleaved = true;
      layer.get<block::DeltaNet>().fused_gates = true;
    }
    if (keys.count_or("expert_count", 0, max_experts, 0) != 0) add_gated_experts(keys, config);
    return config;
  }
};

static_assert(Arch<Qwen3Next>);

}  // namespace mica::arch
