// SPDX-License-Identifier: Apache-2.0
//
// Llama 2 and 3.x, Mistral, Mixtral and their kin (`llama`): pre-norms, grouped-query attention, rotation of
// adjacent pairs (converters permute the weights for that), SwiGLU or a mixture of experts, a head that may
// be tied to the embedding.
#pragma once

#include "mica/arch/concept.hpp"
#include "mica/arch/read_experts.hpp"

namespace mica::arch {

struct Llama {
  // Required by Arch
  static constexpr std::string_view name = "llama";
  using Blocks = TypeList<block::Attention, block::DenseFeedForward, block::Experts>;

  [[nodiscard]] static Config config(const gguf::Document& document) {
    const KeyReader keys(document, name);
    Config config = read_common(keys, name, kernel::RopePairs::adjacent);
    const bool sparse = keys.count_or("expert_count", 0, max_experts, 0) != 0;
    if (!sparse) return config;
    for (Layer& layer : config.layers) {
      const std::size_t ff_width = layer.get<block::DenseFeedForward>().ff_width;
      layer.replace<block::DenseFeedForward, block::Experts>(read_experts(keys, ff_width));
    }
    return config;
  }
};

static_assert(Arch<Llama>);

}  // namespace mica::arch
