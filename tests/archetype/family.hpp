// SPDX-License-Identifier: Apache-2.0
//
// A family of one's own, on top of what families share: Llama whose embeddings are scaled, and whose every
// other layer sees a window.

#pragma once

#include "mica/arch/concept.hpp"
#include "mica/arch/read_keys.hpp"

#include <cmath>

namespace mica::archetype {

struct Family {
  // Required by Arch
  static constexpr std::string_view name = "pebble";
  using Blocks = TypeList<block::Attention, block::DenseFeedForward>;

  static arch::Config config(const gguf::Document& document) {
    const arch::KeyReader keys(document, name);
    arch::Config config = arch::read_common(keys, name, kernel::RopePairs::adjacent);
    config.embedding_scale = std::sqrt(static_cast<float>(config.width));
    const std::size_t window = keys.count("attention.sliding_window", 1, arch::max_context);
    for (std::size_t i = 0; i < config.layers.size(); i += 2) {
      config.layers[i].get<block::Attention>().look_through_window(window);
    }
    return config;
  }
};
static_assert(mica::Arch<Family>);

}  // namespace mica::archetype
