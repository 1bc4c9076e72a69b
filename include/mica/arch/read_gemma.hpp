// SPDX-License-Identifier: Apache-2.0
//
// Common to the Gemma families.
#pragma once

#include "mica/arch/read_keys.hpp"

#include <cmath>
#include <cstddef>
#include <string_view>
#include <vector>

namespace mica::arch {

/// Gemma 1: GeGLU, embeddings multiplied by sqrt(width).
[[nodiscard]] inline Config read_gemma(const KeyReader& keys, std::string_view arch) {
  Config config = read_common(keys, arch, kernel::RopePairs::halves);
  config.embedding_scale = std::sqrt(static_cast<float>(config.width));
  config.logit_softcap = static_cast<float>(keys.positive_or("final_logit_softcapping", 0.0));
  for (Layer& layer : config.layers) layer.get<block::DenseFeedForward>().gate = kernel::Gate::gelu;
  return config;
}

/// The layers with a window: by the file, or all but every `interval`-th.
[[nodiscard]] inline std::vector<bool> read_windows(const KeyReader& keys, std::size_t layers,
                                                    std::size_t interval) {
  if (const auto found = keys.pattern("attention.sliding_window_pattern", layers)) return *found;
  std::vector<bool> windows(layers);
  for (std::size_t i = 0; i < layers; ++i) windows[i] = (i + 1) % interval != 0;
  return windows;
}

/// The second rope, of layers with a window: a base of its own, no scaling.
inline void add_window_rope(const KeyReader& keys, Config& config, std::size_t dims) {
  RopeConfig rope;
  rope.pairs = kernel::RopePairs::halves;
  rope.dims = dims;
  rope.base = keys.positive_or("rope.freq_base_swa", 10000.0);
  config.ropes.push_back(rope);
}

/// Norms of the outputs of both blocks of a layer.
inline void add_post_norms(Layer& layer) {
  layer.get<block::Attention>().post_norm = true;
  layer.get<block::DenseFeedForward>().post_norm = true;
}

/// The last `attention.shared_kv_layers` layers read the keys and values of the last layer before them of
/// their kind, with a window or without.
inline void share_keys_and_values(const KeyReader& keys, Config& config, const std::vector<bool>& windows) {
  const std::size_t n = config.layers.size();
  const std::size_t own = n - keys.count_or("attention.shared_kv_layers", 0, n - 1, 0);
  for (std::size_t i = own; i < n; ++i) {
    std::size_t source = own;
    while (source > 0 && windows[source - 1] != windows[i]) --source;
    MICA_CHECK(source > 0, file, keys.file(), ": key '", keys.key("attention.shared_kv_layers"), "' leaves ",
               own, " layers with keys of their own, none of the kind that layer ", i, " reads");
    config.layers[i].get<block::Attention>().kv_source = source - 1;
  }
}

/// Scores of the largest model of Gemma 2 and 3 are scaled by the width per head, those of the others by
/// head_dim.
[[nodiscard]] inline float gemma_attention_scale(const Config& config,
                                                 const block::AttentionConfig& attention,
                                                 std::size_t layers_of_largest) {
  const std::size_t per_head =
      config.layers.size() == layers_of_largest ? config.width / attention.heads : attention.head_dim;
  return 1.0f / std::sqrt(static_cast<float>(per_head));
}

}  // namespace mica::arch
