// SPDX-License-Identifier: Apache-2.0
//
// A model in numbers: what a family descriptor makes of a file's metadata, and all that the blocks need to know. What
// differs from layer to layer is data per layer.
#pragma once

#include "mica/block/config.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace mica::arch {

using block::LayerConfig;
using block::RopeConfig;

/// A whole model.
struct Config {
  std::string arch;             // general.architecture
  std::string name;             // general.name, for people
  std::size_t n_ctx_train = 0;  // tokens
  std::size_t width = 0;        // embedding_length
  std::size_t n_vocab = 0;      // rows of the head
  float norm_epsilon = 0;
  std::vector<RopeConfig> ropes;  // LayerConfig::rope chooses one
  std::vector<LayerConfig> layers;

  float embedding_scale = 1;  // of token embeddings
  float residual_scale = 1;   // of what a block adds to the residual stream
  float logit_scale = 1;
  float logit_softcap = 0;  // 0: none
  std::size_t per_layer_width =
      0;                    // of the embedding that every layer adds for itself (Gemma 3n, 4); 0: none
  std::size_t streams = 1;  // residual streams of a token, of which blocks read the first (block/altup.hpp)

  /// Name of the FFN pre-norm: Qwen3-Next and gpt-oss keep it where other families keep the norm after attention.
  std::string ffn_norm = "ffn_norm";

  /// The most that any layer has of something.
  template <class Of>
  [[nodiscard]] std::size_t most(Of&& of) const {
    std::size_t most = 0;
    for (const LayerConfig& layer : layers) most = std::max<std::size_t>(most, of(layer));
    return most;
  }
  /// The last so many tokens of a layer's keys and values are read, by it and by layers that share them; 0: all.
  [[nodiscard]] std::size_t kv_window(std::size_t layer) const {
    std::size_t most = 0;
    for (std::size_t i = 0; i < layers.size(); ++i) {
      if (i != layer && layers[i].kv_source != layer) continue;
      if (layers[i].reach == block::Reach::all) return 0;
      most = std::max(most, layers[i].reach_tokens);
    }
    return most;
  }
  /// Whether all who read a layer's keys and values see every token.
  [[nodiscard]] bool kv_seen_whole(std::size_t layer) const {
    bool whole = true;
    for (std::size_t i = 0; i < layers.size(); ++i) {
      if (i == layer || layers[i].kv_source == layer) whole = whole && layers[i].reach == block::Reach::all;
    }
    return whole;
  }
  /// Of one layer; 0: none has any.
  [[nodiscard]] std::size_t most_experts() const {
    return most([](const LayerConfig& l) { return l.experts.count; });
  }
  [[nodiscard]] bool recurrent() const {
    return most([](const LayerConfig& l) { return l.mixer == block::Mixer::delta_net; }) != 0;
  }
};

}  // namespace mica::arch
