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
  using Blocks = mica::TypeList<mica::block::Attention, mica::block::DenseFeedForward>;

  static mica::arch::Config config(const mica::gguf::Document& document) {
    const mica::arch::KeyReader keys(document, name);
    mica::arch::Config config = mica::arch::read_common(keys, name, mica::kernel::RopePairs::adjacent);
    config.embedding_scale = std::sqrt(static_cast<float>(config.width));
    const std::size_t window = keys.count("attention.sliding_window", 1, mica::arch::max_context);
    for (std::size_t i = 0; i < config.layers.size(); i += 2) {
      config.layers[i].get<mica::block::Attention>().look_through_window(window);
    }
    return config;
  }
};
static_assert(mica::Arch<Family>);

}  // namespace mica::archetype
