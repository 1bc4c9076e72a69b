// SPDX-License-Identifier: Apache-2.0
//
// Mistral 3, Ministral 3 (`mistral3`): Llama whose queries grow with the position, in steps of the context
// that YaRN stretches.
#pragma once

#include "mica/arch/concept.hpp"
#include "mica/arch/read_keys.hpp"

#include <cmath>

namespace mica::arch {

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

static_assert(Arch<Mistral3>);

}  // namespace mica::arch
