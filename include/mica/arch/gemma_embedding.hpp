// SPDX-License-Identifier: Apache-2.0
//
// EmbeddingGemma (Vera et al., arXiv 2509.20354): Gemma 3 with attention in both directions, and two dense
// layers behind pooling.
#pragma once

#include "mica/arch/gemma.hpp"
#include "mica/arch/read_encoder.hpp"

#include <cstddef>
#include <string_view>

namespace mica::arch {

struct GemmaEmbedding {
  // Required by Arch
  static constexpr std::string_view name = "gemma-embedding";
  using Blocks = TypeList<block::Attention, block::DenseFeedForward>;

  [[nodiscard]] static Config config(const gguf::Document& document) {
    const KeyReader keys(document, name);
    Config config = read_gemma3(keys, name, 6);
    config.encodes = true;
    for (Layer& layer : config.layers) {
      block::AttentionConfig& attention = layer.get<block::Attention>();
      attention.bidirectional = true;
      if (attention.reach == block::Reach::window)  // half of the file's number in each direction
        attention.look_through_window(attention.reach_tokens / 2 + 1);
    }
    if (config.pooling == Pooling::none) config.pooling = Pooling::mean;
    add_dense(document, config, "dense_2", Activation::none);
    add_dense(document, config, "dense_3", Activation::none);
    return config;
  }
};

static_assert(Arch<GemmaEmbedding>);

}  // namespace mica::arch
